"""Seeding: an empty Noroshi in, one with people and templates out; what is there already is left as it is."""

from importlib.resources import files

from msgspec.structs import asdict

from noroshi.client import Noroshi
from noroshi.client.calls import each
from noroshi.entrypoints.cli.demonstration.cast import CAST, Person
from noroshi.entrypoints.cli.written import read_versions


async def seed(client: Noroshi) -> None:
    await _seed_people(client)
    await _seed_templates(client)


async def _seed_people(client: Noroshi) -> None:
    known = {user.user_id async for user in each(lambda cursor: client.users(cursor=cursor, limit=100))}
    for person in CAST:
        if person.user_id not in known:
            await _introduce(client, person)


async def _introduce(client: Noroshi, person: Person) -> None:
    await client.put_user(
        person.user_id,
        email=person.email,
        phone=person.phone,
        name=person.name,
        locale=person.locale,
        timezone=person.timezone,
        attributes=person.attributes,
    )
    for platform, token in person.devices:
        await client.register_device(person.user_id, platform, token)
    if person.wishes:
        await client.put_preferences(person.user_id, person.wishes)


async def _seed_templates(client: Noroshi) -> None:
    known = {one.template_id async for one in each(lambda cursor: client.templates(cursor=cursor, limit=100))}
    folder = files(__package__).joinpath("templates")
    for file in sorted(folder.iterdir(), key=lambda one: one.name):
        template_id = file.name.removesuffix(".toml")
        if template_id not in known:
            for version in read_versions(file.read_text(encoding="utf-8")):
                await client.add_template(template_id, **asdict(version))
