"""Whether an answer tries to tell the judge what to do: what a credulous simulated judge falls for.

Used by `simulation` when a judge is set to obey planted instructions. A list of tell-tale signs in
several languages; a made-up judge needs no more, and no real one is ever protected by it.
"""

import re

_SIGNS = re.compile(
    r"""
      [\[\uff3b]{2}\s*[ABC]\s*[\]\uff3d]{2}                        # a verdict marker
    | "(?:verdict|scores)"\s*:                                     # a judge's JSON
    | <<<[A-Z]                                                     # a fence
    | <\|im_(?:start|end)\|> | </answer> | ^\#\#\#\s*System        # another speaker
    | \bsystem\ ?message | \bSYSTEMNACHRICHT | MENSAJE\ DEL\ SISTEMA | 系统消息
    | \bignore\ (?:your|the\ rubric|les\ consignes) | \bignoriere\ alle | \bignora\ los
    | 忽略 | 無視して                                              # plain instructions
    | \bverdict\b.{0,40}\bis\b | 裁决是 | \bUrteil\ lautet
    | \b10/10\b                                                    # somebody else's grades
    """,
    re.VERBOSE | re.IGNORECASE | re.MULTILINE,
)


def instructs(text: str) -> bool:
    """True when a text holds a sign of an instruction to the judge."""
    return _SIGNS.search(text) is not None
