"""Which models are of one family, so that no judge votes on an answer of its own kind.

Asked by the committee for every pair whose models are known. Knows names only. A model is of a
family when the family's name, or one that its maker uses for it, stands in the model's name as
a word: "gpt" is in "openai/gpt-4o-mini", not in "chatglm".
"""

import re
from collections.abc import Mapping
from types import MappingProxyType

# Names under which one maker's models go. A family that is not here stands for itself.
_NAMES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "openai": ("gpt", "chatgpt", "o1", "o3", "o4", "davinci"),
        "anthropic": ("claude",),
        "google": ("gemini", "gemma", "palm", "bard"),
        "meta": ("llama",),
        "mistral": ("mistral", "mixtral", "magistral", "ministral", "codestral"),
        "alibaba": ("qwen", "qwq"),
        "deepseek": ("deepseek",),
        "xai": ("grok",),
        "cohere": ("command", "aya"),
        "zhipu": ("glm", "chatglm"),
    }
)
_WORD = re.compile(r"[^\W\d_]+|\d+")


def same_family(family: str | None, model: str | None) -> bool:
    """Whether a model is known to be of a family; what is not known is not the same.

    Args:
        family: a maker ("openai") or a model line ("gpt", "vicuna").
        model: a model's name as the pair gives it.
    """
    if not family or not model:
        return False
    words = _words(model)
    return any(_within(_words(name), words) for name in _aliases(family))


def family_of(model: str | None) -> str | None:
    """The known maker that a model's or a judge's name points to; None where none does.

    The first maker in the list of this module whose name, or one of whose lines, stands in it.
    """
    words = _words(model or "")
    for maker, lines in _NAMES.items():
        if any(_within(_words(name), words) for name in (maker, *lines)):
            return maker
    return None


def _aliases(family: str) -> tuple[str, ...]:
    """Every name of a family: its maker, and all lines of that maker."""
    name = family.casefold()
    for maker, lines in _NAMES.items():
        if name == maker or name in lines:
            return (maker, *lines)
    return (name,)


def _words(name: str) -> list[str]:
    return _WORD.findall(name.casefold())


def _within(part: list[str], whole: list[str]) -> bool:
    width = len(part)
    return width > 0 and any(whole[at : at + width] == part for at in range(len(whole) - width + 1))
