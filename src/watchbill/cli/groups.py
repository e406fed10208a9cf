"""Groups: how commands are listed in help, and what a plural noun does when it stands alone."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, TypeAlias

from typer.core import TyperGroup

LIST: Final = "list"

Context: TypeAlias = Any  # typer brings click with it, under a private name
Formatter: TypeAlias = Any
Command: TypeAlias = Any


class Noun(TyperGroup):
    """Commands about one thing; help has the whole first sentence of each."""

    def format_commands(self, ctx: Context, formatter: Formatter) -> None:
        """Write all commands, in their order."""
        self._write("Commands", self.list_commands(ctx), ctx, formatter)

    def _write(self, title: str, names: Sequence[str], ctx: Context, formatter: Formatter) -> None:
        found = {name: self.get_command(ctx, name) for name in names}
        shown = [(name, _first_sentence(command)) for name, command in found.items() if command is not None]
        if shown:
            with formatter.section(title):
                formatter.write_dl(shown)


class PluralNoun(Noun):
    """Commands about many things; without a command it lists them."""

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:
        """Read the arguments; options alone are those of the list."""
        if not args or (args[0].startswith("-") and args[0] != "--help"):
            args = [LIST, *args]
        return super().parse_args(ctx, args)


class Root(Noun):
    """All commands, by what they are for."""

    sections: ClassVar[Mapping[str, Sequence[str]]] = {
        "Serve a program": ("dev", "up", "agent", "fleet", "check"),
        "Runs": ("run", "schedules"),
        "What waits for people": ("inbox", "incidents"),
        "Operation": ("agents", "gates", "policy", "quota", "suggest", "logbook"),
        "Store": ("doctor", "migrate", "backup", "clock"),
    }

    def list_commands(self, ctx: Context) -> list[str]:
        """Give all names, in the order of the sections; one that none has comes last."""
        known = [name for names in self.sections.values() for name in names]
        there: Mapping[str, Command] = self.commands
        return [name for name in known if name in there] + [name for name in there if name not in known]

    def format_commands(self, ctx: Context, formatter: Formatter) -> None:
        """Write all commands, section by section."""
        left = self.list_commands(ctx)
        for title, names in self.sections.items():
            self._write(title, names, ctx, formatter)
            left = [name for name in left if name not in names]
        self._write("More", left, ctx, formatter)


def _first_sentence(command: Command) -> str:
    text = " ".join((command.help or "").split("\n\n")[0].split())
    first, _, _ = text.partition(". ")
    return first.rstrip(".")
