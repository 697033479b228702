"""The engine: what a template sees, what comes out, and what a failure says."""

from typing import Any

import pytest

from noroshi.domain.templates import TemplateVersion
from noroshi.machine.rendering import engine
from noroshi.machine.rendering.engine import MAX_OUTPUT, CompiledTemplate, RenderError

HANAKO: dict[str, Any] = {
    "name": "Hanako",
    "locale": "ja",
    "timezone": "Asia/Tokyo",
    "attributes": {"plan": "gold", "tags": ["a", "b"]},
}


def version(body: str, **fields: Any) -> TemplateVersion:
    shared = {"subject": None, "title": None, "metadata": {}} | fields
    return TemplateVersion(
        row=1, template_id="t", channel="email", locale="ja", variant="", version=1, body=body, **shared
    )


def render(template: TemplateVersion, data: dict[str, Any] | None = None, person: dict[str, Any] = HANAKO) -> Any:
    compiled = CompiledTemplate(template)
    return compiled.render(compiled.context(data or {}), person)[0]


def body_of(source: str, data: dict[str, Any] | None = None) -> str:
    return str(render(version(source), data)["body"])


def failure_of(template: TemplateVersion, data: dict[str, Any] | None = None) -> str:
    with pytest.raises(RenderError) as raised:
        render(template, data)
    return raised.value.text


def test_data_stands_at_the_top_and_the_person_under_user() -> None:  # N2.7
    source = "{{ order_id }} {{ user.name }} {{ user.locale }} {{ user.timezone }} {{ user.attributes.plan }}"
    assert body_of(source, {"order_id": "A-1"}) == "A-1 Hanako ja Asia/Tokyo gold"


def test_subject_title_and_all_strings_of_metadata_are_templates() -> None:  # N2.1
    metadata = {"image_url": "https://x/{{ n }}", "data": {"deep": ["{{ n }}", 7, None]}, "badge": 3}
    content = render(version("b{{ n }}", subject="s{{ n }}", title="t{{ n }}", metadata=metadata), {"n": 5})
    assert content == {
        "body": "b5",
        "subject": "s5",
        "title": "t5",
        "metadata": {"image_url": "https://x/5", "data": {"deep": ["5", 7, None]}, "badge": 3},
    }


def test_text_without_code_passes_through() -> None:
    template = version("just text\n", metadata={"data": {"a": "b"}})
    assert render(template) == {"body": "just text", "metadata": {"data": {"a": "b"}}}
    assert body_of("just {{ 'text' }}\n") == "just text"


def test_html_is_escaped_in_html_parts_only() -> None:  # N2.6
    source = "{{ word }}"
    metadata = {"html_body": source, "text_body": source, "htmlish": {"inner": [source]}, "data": {"html_x": source}}
    content = render(version(source, metadata=metadata), {"word": "<b>&"})
    assert content["body"] == content["metadata"]["text_body"] == "<b>&"
    escaped = [
        content["metadata"]["html_body"],
        content["metadata"]["htmlish"]["inner"][0],
        content["metadata"]["data"]["html_x"],
    ]
    assert escaped == ["&lt;b&gt;&amp;"] * 3


@pytest.mark.parametrize(
    "source",
    ["{{ missing }}", "{{ user.missing }}", "{{ order.missing }}", "{% if missing %}{% endif %}", "{{ missing.x }}"],
)
def test_an_undefined_variable_is_a_failure(source: str) -> None:  # N2.5
    assert "an undefined value" in failure_of(version(source), {"order": {}})


def test_a_missing_value_may_be_asked_about() -> None:
    source = "{{ missing|default('none') }}{% if user.x is defined %}x{% endif %}"
    assert body_of(source) == "none"


def test_a_failure_names_field_line_and_piece_of_the_template() -> None:
    template = version("fine", metadata={"data": {"a": ["ok", "one\n日本 {{ user.nothing }}"]}})
    assert failure_of(template) == "metadata.data.a[1], line 2: an undefined value (`user.nothing`)"


@pytest.mark.parametrize(
    "source", ["{{ secret // 0 }}", "{{ secret.x() }}", "{{ secret|abs }}", "{{ [1][secret] + 1 }}"]
)
def test_a_failure_never_holds_a_value(source: str) -> None:
    for secret in ("hunter2-7731", {"k": "hunter2-7731"}, ["hunter2-7731"]):
        assert "7731" not in failure_of(version(source), {"secret": secret})


def test_more_than_256_kb_in_all_parts_together_is_a_failure() -> None:
    half = "{{ text }}"
    template = version(half, subject=half, metadata={"text_body": half})
    limit = MAX_OUTPUT - 100
    assert failure_of(template, {"text": "x" * (limit // 2)}) == "more than 256 kB came out"
    assert render(template, {"text": "x" * (limit // 3)})["subject"].startswith("x")
    fixed = version(half, metadata={"text_body": "{{ 1 }}", "data": {"note": "x" * 200}})
    assert failure_of(fixed, {"text": "x" * (MAX_OUTPUT - 100)}) == "more than 256 kB came out"
    assert failure_of(version(half), {"text": "火" * (MAX_OUTPUT // 3 + 1)}) == "more than 256 kB came out"


def test_loops_end_when_the_fuel_is_used_up() -> None:  # N2.6
    endless = "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}"
    assert "too many steps" in failure_of(version(endless))


def test_without_fuel_the_same_loop_goes_on() -> None:
    source = "{% for a in range(1500) %}{% for b in range(500) %}{% endfor %}{% endfor %}done"
    assert "too many steps" in failure_of(version(source))
    compiled = CompiledTemplate(version(source), fuel=None)
    assert compiled.render({}, HANAKO)[0]["body"] == "done"


@pytest.mark.parametrize("name", ["items", "keys", "values", "get", "pop", "update", "copy", "clear"])
def test_the_name_of_a_method_is_a_name_like_any_other(name: str) -> None:
    assert body_of(f"{{{{ {name} }}}}", {name: "mine"}) == "mine"
    assert body_of(f"{{{{ x.{name} }}}}", {"x": {name: "mine"}}) == "mine"
    assert body_of(f"{{{{ {name} is defined }}}}{{{{ x.{name} is defined }}}}", {"x": {}}) == "FalseFalse"
    assert "an undefined value" in failure_of(version(f"{{{{ {name} }}}}"))
    assert "an undefined value" in failure_of(version(f"{{{{ x.{name} }}}}"), {"x": {}})
    assert "an undefined value" in failure_of(version(f"{{{{ x['{name}'] }}}}"), {"x": {}})


REACHING_FOR_METHODS = [
    "{{ lines.append(4) }}",
    "{{ lines.pop() }}",
    "{{ order.update(a=1) }}",
    "{{ order.clear() }}",
    "{{ order['cle' ~ 'ar']() }}",
    "{% for f in [order]|map(attribute='cle' ~ 'ar') %}{{ f() }}{% endfor %}",
    "{% for f in [order]|map(**{'attri' ~ 'bute': 'clear'}) %}{{ f() }}{% endfor %}",
    "{% for f in [[order]]|map('group' ~ 'by', 'clear') %}{{ f[0][0]() }}{% endfor %}",
]


@pytest.mark.parametrize("source", REACHING_FOR_METHODS)
def test_no_template_changes_what_the_next_recipient_sees(source: str) -> None:  # N2.6
    data = {"lines": [1, 2], "order": {"a": 0}}
    assert failure_of(version(source), data)
    assert data == {"lines": [1, 2], "order": {"a": 0}}


@pytest.mark.parametrize("source", REACHING_FOR_METHODS)
def test_control_unsealed_values_are_changed(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "may_name_a_method", lambda _: False)
    data = {"lines": [1, 2], "order": {"a": 0}}
    render(version(source), data)
    assert data != {"lines": [1, 2], "order": {"a": 0}}


@pytest.mark.parametrize(
    "source", ["{{ update(name='x') }}", "{{ pop('user') }}", "{{ user.pop('name') }}", "{{ get }}"]
)
def test_neither_the_person_nor_the_context_has_methods(source: str) -> None:
    assert failure_of(version(source))
    assert HANAKO["name"] == "Hanako"


def test_maps_and_lists_print_and_loop_alike_sealed_or_not() -> None:
    source = (
        "{{ order }}{{ lines }}{{ order|tojson }}{{ lines|length }}{{ order|length }}{{ 'a' in order }}"
        "{% for key, value in order|items %}{{ key }}={{ value }}{% endfor %}{{ lines|join('-') }}"
        "{{ order is mapping }}{{ lines is sequence }}{{ lines == lines }}{{ order.a }}"
    )
    data = {"order": {"a": {"b": [1, {"c": None}]}, "n": 1.5}, "lines": [3, 1, 2]}
    assert body_of(source, data) + "1" == body_of(source + "{{ [1][0] }}", data)


def test_a_template_cannot_reach_another_one() -> None:
    for source in ("{% include '0.txt' %}", "{% import '1.txt' as x %}", "{% extends '0.txt' %}"):
        assert failure_of(version(source))


def test_a_version_that_does_not_compile_says_where() -> None:
    with pytest.raises(RenderError) as raised:
        CompiledTemplate(version("fine", subject="one\n{{ two"))
    assert raised.value.text.startswith("subject, line 2: ")
