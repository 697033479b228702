"""The mail of B7, as template text: what we and the yardstick both render for every person."""

SENDER = "The Shop <shop@noroshi.example>"
SUBJECT = "{{ user.name }}, your order {{ order }} is on its way"
TEXT = """Hello {{ user.name }},

your order {{ order }} over {{ total }} yen is on its way:
{% for item in items %}- {{ item }}
{% endfor %}
Where it is: https://shop.example/orders/{{ order }}

Thank you for shopping with us.
The Shop, 1-2-3 Somewhere, Tokyo
"""
HTML = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Your order</title></head>
<body style="font-family: sans-serif; color: #222; max-width: 40em; margin: auto">
<h1 style="font-size: 1.3em">Hello {{ user.name }},</h1>
<p>your order <b>{{ order }}</b> over {{ total }} yen is on its way:</p>
<ul>{% for item in items %}<li style="padding: 0.2em">{{ item }}</li>{% endfor %}</ul>
<p><a href="https://shop.example/orders/{{ order }}" style="background: #c33; color: #fff">Where it is</a></p>
<p style="color: #888">Thank you for shopping with us.<br>The Shop, 1-2-3 Somewhere, Tokyo</p>
</body></html>
"""
