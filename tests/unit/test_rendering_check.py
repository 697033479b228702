"""The check of a template that is about to be stored."""

import ast
import re
from typing import Any

import pytest
from minijinja import Environment

from noroshi.domain.templates import TemplateVersion
from noroshi.machine.rendering import allowed
from noroshi.machine.rendering.engine import MAX_SOURCE, check_template


def check(body: str, **fields: Any) -> str | None:
    shared = {"subject": None, "title": None, "metadata": {}} | fields
    return check_template(
        TemplateVersion(
            row=1, template_id="t", channel="email", locale="ja", variant="", version=1, body=body, **shared
        )
    )


def installed(kind: str) -> set[str]:
    """What the installed minijinja brings along, as its own debug() prints it."""
    text = Environment().render_str("{{ debug() }}")
    if kind == "globals":
        return set(re.findall(r'"(\w+)": minijinja', text))
    found = re.search(rf"{kind}: (\[.*?\n        \])", text, re.DOTALL)
    assert found is not None
    return set(ast.literal_eval(found[1]))


def test_every_name_that_minijinja_has_is_allowed_or_refused() -> None:  # N2.6
    assert installed("filters") == allowed.FILTERS | allowed.REFUSED_FILTERS
    assert installed("tests") == allowed.TESTS | allowed.SIGN_TESTS | allowed.REFUSED_TESTS
    assert installed("globals") == allowed.FUNCTIONS | allowed.REFUSED_FUNCTIONS


@pytest.mark.parametrize(
    "source",
    [
        "Hello {{ user.name }}, {{ order_id }}",
        "{% for line in order.lines if line.count > 1 %}{{ loop.index }} {{ line.name|upper|trim }}{% endfor %}",
        "{% set x = (1 + 2) * 3 %}{{ x }}{% with y = (4) %}{{ y }}{% endwith %}",
        "{% if (a and (b or not (c))) is defined %}{% elif (x) %}{% else %}{% endif %}",
        "{% if x is not none and y is divisibleby(3) %}{% endif %}",
        "{{ lines|map('upper')|select('string')|reject('eq', 3)|join(', ') }}",
        "{{ lines|map(attribute='name')|list }}",
        "{% filter upper %}text{% endfilter %}{% filter replace('a', 'b') %}text{% endfilter %}",
        "{% for n in range(3) %}{{ loop.cycle('a', 'b') }}{% endfor %}",
        "{% set ns = namespace(total=0) %}{% set ns.total = 1 %}{{ dict(a=1).a }}",
        "{% macro link(url) %}{{ url|urlencode }}{% endmacro %}{{ link('x') }}",
        "{# a comment may say x|format or {% include 'x' %} #}",
        "{% raw %}{{ x|format }}{% include 'x' %}{% endraw %}",
        "{%- raw -%}{{ x|format }}{%- endraw -%}{{ x|upper }}",
        "a | format is plain text, and so is { % include % }",
        "{{ 'x|format' }}{{ \"a}}|format\" }}{{ 'it\\'s|format' }}",
        "{{ {'a': {'b': 1}}.a.b }}",
        "{{- x -}}{%- if y -%}{%- endif -%}",
        "{{ user.is }}{{ user.format }}{{ format }}",
        "{% for (a, b) in pairs %}{% continue %}{% endfor %}",
        "日本語 {{ '|format' }}",
        "",
    ],
)
def test_what_templates_need_is_allowed(source: str) -> None:
    assert check(source) is None


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("{{ '%500000000s'|format('a') }}", "the filter `format` is not allowed"),
        ("{{ x | \n format }}", "the filter `format` is not allowed"),
        ("{% if x|attr('y') %}{% endif %}", "the filter `attr` is not allowed"),
        ("{% filter format('a') %}%9s{% endfilter %}", "the filter `format` is not allowed"),
        ("{% filter upper|format %}%9s{% endfilter %}", "the filter `format` is not allowed"),
        ("{% set x %}{{ y|pprint }}{% endset %}", "the filter `pprint` is not allowed"),
        ("{{ x|map('format', 1) }}", "the filter `format` is not allowed"),
        ("{{ x|select('filter') }}", "the test `filter` is not allowed"),
        ("{{ x|nothing }}", "the filter `nothing` is not allowed"),
        ("{{ 'upper' is filter }}", "the test `filter` is not allowed"),
        ("{{ x is not nothing }}", "the test `nothing` is not allowed"),
        ("{{ debug() }}", "the function `debug` is not allowed"),
        ("{{ lipsum(n=100) }}", "the function `lipsum` is not allowed"),
        ("{{ cycler('a', 'b').next() }}", "the function `cycler` is not allowed"),
        ("{{ 'a'.ljust(500000000) }}", "the method `ljust` cannot be called; use a filter"),
        ("{{ '{0}'.format(user) }}", "the method `format` cannot be called; use a filter"),
        ("{{ order.items() }}", "the method `items` cannot be called; use a filter"),
        ("{{ x['get']() }}", "only a function that is named may be called"),
        ("{{ (x)() }}", "only a function that is named may be called"),
        ("{% for x in xs recursive %}{{ loop(x) }}{% endfor %}", "the function `loop` is not allowed"),
        ("{% include 'x' %}", "the statement `include` is not allowed"),
        ("{%- include 'x' ignore missing -%}", "the statement `include` is not allowed"),
        ("{% import 'x' as y %}", "the statement `import` is not allowed"),
        ("{% from 'x' import y %}", "the statement `from` is not allowed"),
        ("{% extends 'x' %}", "the statement `extends` is not allowed"),
        ("{% autoescape false %}{% endautoescape %}", "the statement `autoescape` is not allowed"),
        ("{% do x() %}", "the statement `do` is not allowed"),
        ("{% raw %}{% endraw %}{{ x|format }}", "the filter `format` is not allowed"),
        ("{# #}{{ x|format }}", "the filter `format` is not allowed"),
        ("{{ {'a': {}} }}{{ x|format }}", "the filter `format` is not allowed"),
    ],
)
def test_what_is_not_listed_is_refused(source: str, problem: str) -> None:  # N2.6
    assert check(source) in (f"body, line 1: {problem}", f"body, line 2: {problem}")


def test_a_fault_is_found_in_every_part_and_named_with_its_line() -> None:
    assert check("fine", subject="a\nb {{ x|format }}") == "subject, line 2: the filter `format` is not allowed"
    assert check("fine", title="{{ x") == "title, line 1: unexpected end of input, expected end of variable block"
    found = check("fine", metadata={"data": {"a": ["", "{{ x|format }}"]}})
    assert found == "metadata.data.a[1], line 1: the filter `format` is not allowed"


@pytest.mark.parametrize(
    "source", ["{{ ", "{% if x %}", "{% nothing %}", "{{ x| }}", "{% for %}", "{{ 'x }}", "{% raw %}"]
)
def test_a_syntax_error_is_refused(source: str) -> None:
    found = check(source)
    assert found is not None
    assert found.startswith("body, line 1: ")


def test_at_most_64_kb_of_source_in_all_parts_together() -> None:
    half = "火" * (MAX_SOURCE // 6)
    assert check(half, metadata={"text_body": half}) is None
    found = check(half + "xxxx", subject="x", metadata={"text_body": half})
    assert found == f"the template has {len(half.encode()) * 2 + 5} bytes; at most {MAX_SOURCE} are allowed"


def test_text_that_is_not_unicode_is_refused() -> None:
    assert check("\ud800 {{ x }}") == "the text is not valid Unicode"
