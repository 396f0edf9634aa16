from django.db import models


class Customer(models.Model):
    name = models.CharField(max_length=100)
    email = models.EmailField(blank=True)

    def __str__(self) -> str:
        return self.name


class Order(models.Model):
    customer = models.ForeignKey(Customer, models.CASCADE, null=True)
    total = models.IntegerField(default=0)
    paid = models.BooleanField(default=False)
    status = models.CharField(max_length=20, default="new")

    def __str__(self) -> str:
        return f"order {self.pk}"


class Invoice(models.Model):
    order = models.ForeignKey(Order, models.CASCADE)
    number = models.CharField(max_length=20, blank=True)
    sent = models.BooleanField(default=False)

    def __str__(self) -> str:
        return f"invoice {self.pk}"


class Feed(models.Model):
    url = models.URLField()
    title = models.CharField(max_length=200, blank=True)

    def __str__(self) -> str:
        return self.url
