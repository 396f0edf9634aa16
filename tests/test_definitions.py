"""``@job``: names, options, what it refuses, and calling the function with and without a queue."""

import asyncio
import datetime as dt
import functools
import importlib
import inspect
import sys

import pytest
from asgiref.sync import async_to_sync, iscoroutinefunction

from django_jobs import InvalidJob, JobContext, JobDefinition, job, registry
from django_jobs.backoff import DEFAULT, Exponential
from django_jobs.job_registry import Registry
from django_jobs.options import Options


@pytest.fixture(autouse=True)
def _registry_as_before(monkeypatch):
    """What a test registers is gone when it ends."""
    monkeypatch.setattr(registry, "_definitions", dict(registry._definitions))
    monkeypatch.setattr(registry, "_names", dict(registry._names))


@job
def add(a, b=1):
    """Add."""
    return a + b


@job(queue_name="math", priority=3, max_attempts=2)
async def multiply(a, b):
    await asyncio.sleep(0)
    return a * b


@job(takes_context=True)
def describe(context, word):
    return context, word


@job(takes_context=True)
async def describe_async(context, word):
    return context, word


def plain(x):
    return x


async def plain_async(x):
    return x


def generator(x):
    yield x


async def async_generator(x):
    yield x


def wrapped_by(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)

    return wrapper


@wrapped_by
def decorated(a, b=2):
    return a, b


class Callable:
    def __call__(self, x):
        return x


class AsyncCallable:
    async def __call__(self, x):
        return x


class Shelf:
    @job
    @staticmethod
    def sort(order):
        return order

    @job
    @staticmethod
    async def fetch(order):
        return order

    def method(self, x):
        return x

    @classmethod
    def for_class(cls, x):
        return x


class TestJob:
    def test_without_arguments(self):
        assert isinstance(add, JobDefinition)
        assert add.name == "tests.test_definitions.add"
        assert add.queue_name == "default"
        assert (add.options.priority, add.options.max_attempts, add.options.run_after) == (0, None, None)
        assert add.backoff is DEFAULT
        assert add.retry_on is None
        assert (add.give_up_on, add.takes_context, add.aliases, add.is_async) == ((), False, (), False)

    def test_with_arguments(self):
        assert multiply.name == "tests.test_definitions.multiply"
        assert (multiply.queue_name, multiply.options.priority, multiply.options.max_attempts) == (
            "math",
            3,
            2,
        )
        assert multiply.is_async

    def test_with_empty_parentheses(self):
        assert job()(plain).name == "tests.test_definitions.plain"

    def test_takes_every_option(self):
        definition = job(
            queue_name="mail",
            priority=-100,
            max_attempts=1,
            backoff=Exponential(base=2),
            give_up_on=[KeyError, LookupError],
            retry_on=[OSError],
            takes_context=True,
            name="everything",
            aliases=["one", "two"],
            using="default",
        )(plain)

        assert definition.name == "everything"
        assert definition.options.using == "default"
        assert definition.backoff == Exponential(base=2)
        assert definition.give_up_on == (KeyError, LookupError)
        assert definition.retry_on == (OSError,)
        assert definition.takes_context
        assert definition.aliases == ("one", "two")

    def test_one_exception_class_to_give_up_on(self):
        assert job(give_up_on=KeyError)(plain).give_up_on == (KeyError,)

    def test_exception_classes_are_checked_where_they_are_given(self):
        with pytest.raises(
            InvalidJob, match=r"^retry_on of tests\.test_definitions\.plain has 'OSError'; it must be"
        ):
            job(retry_on="OSError")(plain)

    def test_another_variant_of_a_job_keeps_its_exception_classes(self):
        definition = job(retry_on=OSError, give_up_on=KeyError)(plain).using(priority=1)

        assert (definition.retry_on, definition.give_up_on) == ((OSError,), (KeyError,))

    def test_looks_like_the_function(self):
        assert add.__doc__ == "Add."
        assert (add.__module__, add.__qualname__, add.__name__) == ("tests.test_definitions", "add", "add")
        assert inspect.unwrap(add) is add.function
        assert str(inspect.signature(add)) == "(a, b=1)"
        assert repr(add) == "<job function tests.test_definitions.add>"

    def test_one_decorator_may_serve_two_functions(self):
        on_mail = job(queue_name="mail")

        assert on_mail(plain).queue_name == on_mail(plain_async).queue_name == "mail"
        assert function_of("tests.test_definitions.plain") is plain
        assert function_of("tests.test_definitions.plain_async") is plain_async

    def test_a_decorated_function(self):
        definition = job(decorated)

        assert definition.name == "tests.test_definitions.decorated"
        assert str(definition.arguments.signature) == "(a, b=2)"

    @pytest.mark.parametrize(
        ("function", "is_async", "signature"),
        [
            (functools.partial(plain), False, "(x)"),
            (functools.partial(decorated, 1), False, "(b=2)"),
            (functools.partial(plain_async), True, "(x)"),
            (Callable(), False, "(x)"),
            (AsyncCallable(), True, "(x)"),
            (lambda x: x, False, "(x)"),
            (Shelf().method, False, "(x)"),
            (Shelf.for_class, False, "(x)"),
        ],
        ids=[
            "partial",
            "partial with",
            "async partial",
            "object",
            "async object",
            "lambda",
            "bound",
            "class",
        ],
    )
    def test_what_is_called_like_a_function_can_be_one_by_a_name(self, function, is_async, signature):
        definition = job(name="tests.callable")(function)

        assert definition.function is function
        assert definition.is_async is is_async
        assert str(definition.arguments.signature) == signature

    def test_a_static_method(self):
        assert Shelf.sort.name == "tests.test_definitions.Shelf.sort"
        assert (Shelf.sort.is_async, Shelf.fetch.is_async) == (False, True)
        assert Shelf.sort.call("up") == Shelf().sort.call("up") == "up"
        assert Shelf.fetch.call("up") == "up"

    @pytest.mark.parametrize(
        ("refused", "message"),
        [
            (3, r"^@job decorates a function, not 3\.$"),
            (
                "add",
                r"^@job decorates a function, not 'add'\. Options go by name: @job\(queue_name=\.\.\.\)\.$",
            ),
            (Callable, "^@job decorates a function, not <class"),
            (classmethod(plain), "^@job decorates a function, not <classmethod"),
            (add, "^@job decorates a function, not <job function tests.test_definitions.add>"),
            (generator, r"generator is a generator function.*Use no yield"),
            (async_generator, r"async_generator is a generator function"),
            (Shelf.method, r"Shelf\.method is a method, and a worker has no self to call it with"),
            (max, r"can't be a job: no signature found for builtin"),
        ],
    )
    @pytest.mark.parametrize("options", [{}, {"name": "tests.refused"}], ids=["path", "name"])
    def test_refuses_what_is_no_function(self, refused, message, options):
        if "name" in options:
            message = message.replace(r"Shelf\.method", r"tests\.refused").replace(
                "async_generator", "refused"
            )
            message = message.replace("generator is a", "refused is a")
        with pytest.raises(InvalidJob, match=message):
            job(**options)(refused)
        assert "tests.refused" not in registry

    def test_refuses_an_unknown_option_and_names_the_nearest(self):
        with pytest.raises(InvalidJob, match=r"^There is no option 'queue'; did you mean 'queue_name'\?$"):
            job(queue="mail")  # type: ignore[call-overload]
        with pytest.raises(
            InvalidJob, match=r"^There is no option 'zzz'; there are queue_name, priority, .*using, .*\.$"
        ):
            job(zzz=1)  # type: ignore[call-overload]

    @pytest.mark.parametrize("option", ["tags", "run_after", "pending", "unique_key", "countdown"])
    def test_points_to_using_for_what_is_each_jobs_own(self, option):
        meant = "run_after" if option == "countdown" else option
        with pytest.raises(InvalidJob) as refusal:
            job(**{option: 1})
        assert str(refusal.value) == (
            f"There is no option {option!r} here; {meant} is each job's own: .using({meant}=...)."
        )


class TestName:
    def test_is_the_dotted_path(self):
        assert job(plain).name == "tests.test_definitions.plain"

    def test_can_be_chosen(self):
        assert job(name="mail.welcome")(plain).name == "mail.welcome"
        assert "tests.test_definitions.plain" not in registry

    def test_of_a_function_in_a_function_must_be_chosen(self):
        def inner(): ...

        with pytest.raises(
            InvalidJob, match=r"<locals>\.inner is defined inside a function.* give it a name="
        ):
            job(inner)
        assert job(name="inner")(inner).name == "inner"

    def test_of_a_lambda_must_be_chosen(self):
        with pytest.raises(InvalidJob, match="defined inside a function"):
            job(lambda: None)

    @pytest.mark.parametrize("function", [functools.partial(plain), Callable()])
    def test_of_what_has_no_path_must_be_chosen(self, function):
        with pytest.raises(InvalidJob, match=r"has no dotted path to be found by\. Give it a name=\."):
            job(function)

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("", r"^name of a job function is ''; it must be a string that is not empty\.$"),
            (5, r"^name of a job function is 5; it must be a string"),
            ("x" * 201, r"^name of a job function has 201 characters, over the limit of 200"),
            ("a\0b", r"^name of a job function has a NUL character at position 1"),
            ("a\ud800", r"^name of a job function has a lone surrogate \(U\+D800\) at position 1"),
        ],
    )
    def test_that_is_not_allowed(self, name, message):
        with pytest.raises(InvalidJob, match=message):
            job(name=name)(plain)
        with pytest.raises(InvalidJob, match=message):
            job(aliases=[name])(plain)

    def test_may_have_as_many_characters_as_the_column(self):
        assert job(name="ä" * 200)(plain).name == "ä" * 200


class TestDuplicates:
    def test_are_refused_with_both_places(self):
        job(name="twice")(plain)

        with pytest.raises(InvalidJob) as refusal:
            job(name="twice")(plain_async)

        assert str(refusal.value) == (
            f"Two functions want the job name 'twice': tests.test_definitions.plain ({__file__}:{line_of(plain)}) and "
            f"tests.test_definitions.plain_async ({__file__}:{line_of(plain_async)}). Give one of them another name=."
        )
        assert function_of("twice") is plain

    def test_of_the_same_path_in_one_module(self):
        def make_one():
            def same(): ...

            return same

        def make_other():
            def same(): ...

            return same

        one, other = make_one(), make_other()
        one.__qualname__ = other.__qualname__ = "same"
        job(one)

        with pytest.raises(
            InvalidJob, match=rf"same \(.*:{line_of(one)}\) and .*same \(.*:{line_of(other)}\)"
        ):
            job(other)

    def test_of_objects_that_have_no_path(self):
        job(name="twice")(Callable())

        with pytest.raises(InvalidJob, match=r"tests\.test_definitions\.Callable and .*AsyncCallable"):
            job(name="twice")(AsyncCallable())

    def test_an_alias_of_one_and_the_name_of_another(self):
        job(aliases=["old"])(plain)

        with pytest.raises(InvalidJob, match="Two functions want the job name 'old'"):
            job(name="old")(plain_async)
        with pytest.raises(InvalidJob, match="Two functions want the job name 'old'"):
            job(aliases=["old"])(plain_async)
        assert "tests.test_definitions.plain_async" not in registry, "all of a definition or nothing"

    def test_a_module_that_is_reloaded_is_none(self, tmp_path, monkeypatch):
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.setattr(sys, "dont_write_bytecode", True)
        source = tmp_path / "reloaded_jobs.py"
        source.write_text("from django_jobs import job\n\n@job\ndef work(): return 1\n")
        module = importlib.import_module("reloaded_jobs")
        source.write_text("from django_jobs import job\n\n# A new line.\n\n@job\ndef work(): return 'two'\n")

        importlib.reload(module)

        assert registry.get("reloaded_jobs.work") is module.work
        assert function_of("reloaded_jobs.work")() == "two"
        monkeypatch.delitem(sys.modules, "reloaded_jobs")


class TestAliases:
    def test_serve_old_names(self):
        definition = job(aliases=["old", "older"])(plain)

        assert registry.get("old") is registry.get("older") is registry.get(definition.name) is definition
        assert "old" in registry

    def test_do_not_show_as_functions_of_their_own(self):
        definition = job(aliases=["old"])(plain)

        assert list(registry).count(definition) == 1

    def test_may_come_from_an_iterator(self):
        assert job(aliases=iter(["old", "older"]))(plain).aliases == ("old", "older")

    @pytest.mark.parametrize("aliases", ["old", None, 5])
    def test_must_be_a_list(self, aliases):
        with pytest.raises(InvalidJob, match=r"^aliases of .* is .*; it must be a list of names\.$"):
            job(aliases=aliases)(plain)


class TestRegistry:
    def test_knows_what_is_defined(self):
        assert registry.get("tests.test_definitions.add") is add
        assert add in list(registry)
        assert "tests.test_definitions.add" in registry
        assert {"math", "default"} <= registry.queue_names()

    def test_does_not_know_what_is_not(self):
        assert registry.get("os.system") is None
        assert "os.system" not in registry

    def test_forgets(self):
        own = Registry()
        definition = job(name="forgotten", aliases=["old"])(plain)
        own.add(definition)

        own.remove(definition)

        assert (own.get("forgotten"), own.get("old"), list(own)) == (None, None, [])

    def test_can_be_added_to_while_it_is_iterated(self):
        for _definition in registry:
            job(plain)

    def test_what_using_returns_is_not_registered(self):
        add.using(queue_name="other")

        assert registry.get(add.name) is add
        assert "other" not in registry.queue_names()


class TestCall:
    def test_calls_the_function(self):
        assert add.call(1, b=2) == 3

    def test_runs_an_async_function_to_its_end(self):
        assert multiply.call(2, b=3) == 6

    def test_from_async_code(self):
        assert async_to_sync(add.acall)(1, b=2) == 3
        assert async_to_sync(multiply.acall)(2, b=3) == 6

    def test_parentheses_call_the_function_as_it_was_written(self):
        assert add(1) == 2
        assert async_to_sync(multiply)(2, 3) == 6
        coroutine = multiply(2, 3)
        assert inspect.iscoroutine(coroutine)
        coroutine.close()
        assert (iscoroutinefunction(multiply), iscoroutinefunction(add)) == (True, False)

    @pytest.mark.parametrize(
        "call",
        [
            describe.call,
            describe,
            describe_async.call,
            async_to_sync(describe.acall),
            async_to_sync(describe_async.acall),
            async_to_sync(describe_async),
        ],
    )
    def test_passes_a_context(self, call):
        context, word = call(word="hello")

        assert isinstance(context, JobContext)
        assert context.job is None
        assert word == "hello"

    def test_raises_what_the_function_raises(self):
        with pytest.raises(TypeError, match="unsupported operand"):
            add.call(1, "2")


class TestParameterNames:
    """The function's own, whatever ours are called."""

    NAMES = (
        "self",
        "args",
        "kwargs",
        "name",
        "using",
        "function",
        "func",
        "definition",
        "call",
        "context",
        "loop",
    )

    def all_of(self):
        def function(self, args, kwargs, name, using, function, func, definition, call, context, loop):
            return [self, args, kwargs, name, using, function, func, definition, call, context, loop]

        return job(name="tests.names")(function)

    def test_do_not_get_in_the_way_of_a_call(self):
        given = {name: index for index, name in enumerate(self.NAMES)}
        definition = self.all_of()

        assert definition(**given) == list(range(11))
        assert definition.call(**given) == list(range(11))
        assert async_to_sync(functools.partial(definition.acall, **given))() == list(range(11))

    @pytest.mark.django_db
    def test_do_not_get_in_the_way_of_an_enqueue(self):
        given = {name: index for index, name in enumerate(self.NAMES)}
        definition = self.all_of()

        assert definition.enqueue(**given).kwargs == given
        assert definition.using(priority=1).enqueue(**given).kwargs == given
        assert async_to_sync(functools.partial(definition.aenqueue, **given))().kwargs == given
        assert definition.enqueue_many([given])[0].kwargs == given
        assert definition.prepare(**given).new.name == "tests.names"

    def test_self_is_an_ordinary_name_at_the_top_of_a_module(self):
        def function(self): ...

        function.__qualname__ = "function"
        assert job(function).name == "tests.test_definitions.function"


class TestUsing:
    def test_changes_what_it_is_given(self):
        other = multiply.using(queue_name="slow", priority=-5, max_attempts=9, using="default")

        assert (other.queue_name, other.options.priority, other.options.max_attempts) == ("slow", -5, 9)
        assert other.options.using == "default"
        assert (other.name, other.function, other.is_async) == (multiply.name, multiply.function, True)

    def test_leaves_the_definition_alone(self):
        multiply.using(queue_name="slow", priority=-5)

        assert (multiply.queue_name, multiply.options.priority) == ("math", 3)

    @pytest.mark.parametrize("name", ["delay", "apply_async", "defer"])
    def test_enqueue_is_named_to_who_looks_for_another_queues_method(self, name):
        with pytest.raises(
            AttributeError, match=rf"no attribute '{name}'; .*\.add\.enqueue\(\) enqueues a call"
        ):
            getattr(add, name)
        assert not hasattr(add, "nothing")

    def test_adds_up(self):
        assert multiply.using(priority=5).using(queue_name="slow").options.priority == 5

    @pytest.mark.parametrize(
        ("unknown", "hint"),
        [
            ("queue", "did you mean 'queue_name'?"),
            ("prio", "did you mean 'priority'?"),
            ("attempts", "did you mean 'max_attempts'?"),
            ("run_at", "did you mean 'run_after'?"),
            ("zzz", "there are queue_name, priority, max_attempts, run_after, using, "),
            ("back_off", "did you mean 'backoff'?"),
            ("countdown", "did you mean 'run_after'?"),
            ("quue", "did you mean 'queue_name'?"),
            ("max_retries", "did you mean 'max_attempts'?"),
        ],
    )
    def test_refuses_an_unknown_option_and_names_the_nearest(self, unknown, hint):
        with pytest.raises(InvalidJob) as refusal:
            add.using(**{unknown: 1})  # type: ignore[arg-type]
        assert str(refusal.value).startswith(f"There is no option {unknown!r}; {hint}")

    @pytest.mark.parametrize("option", ["retry_on", "atomic", "takes_context", "bind"])
    def test_points_to_the_decorator_for_what_is_the_functions(self, option):
        meant = "takes_context" if option == "bind" else option
        with pytest.raises(InvalidJob) as refusal:
            add.using(**{option: True})
        assert str(refusal.value) == (
            f"There is no option {option!r} here; {meant} is the function's: @job({meant}=...)."
        )

    def test_none_takes_an_option_away(self):
        limited = job(timeout=5, unique=True, unique_for=dt.timedelta(hours=1), max_attempts=2)(plain)
        changed = limited.using(tags=["a"], backoff=5, unique_key="k")
        bare = changed.using(
            timeout=None,
            tags=None,
            max_attempts=None,
            unique=None,
            unique_key=None,
            unique_for=None,
            backoff=None,
        )

        assert bare.options == Options(timeout=0)
        assert changed.using().options == changed.options

    def test_none_is_as_if_left_out_for_what_a_job_always_has(self):
        other = multiply.using(
            queue_name=None, priority=None, run_after=None, using=None, on_duplicate=None, pending=None
        )

        assert other.options == multiply.options


class TestTakesContext:
    def test_is_not_for_the_caller_of_enqueue(self):
        assert str(describe.arguments.signature) == "(word)"

    @pytest.mark.parametrize("function", [lambda: None, lambda *, context: None, lambda **context: None])
    def test_needs_a_parameter_to_take_it(self, function):
        with pytest.raises(InvalidJob, match=r"can't be a job: takes_context=True passes it a context first"):
            job(name="tests.no_context", takes_context=True)(function)

    def test_any_number_of_arguments_can_take_it(self):
        definition = job(name="tests.context", takes_context=True)(lambda *args: args)

        context, *others = definition.call(1, 2)
        assert isinstance(context, JobContext)
        assert others == [1, 2]
        assert str(definition.arguments.signature) == "(*args)"


def function_of(name):
    definition = registry.get(name)
    assert definition is not None
    return definition.function


def line_of(function):
    return function.__code__.co_firstlineno
