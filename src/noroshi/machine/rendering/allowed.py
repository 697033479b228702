"""What a template may use: nothing is reachable that is not named here (N2.6).

REFUSED names the rest of what minijinja brings along, so that it can be taken out of an environment; a test holds
the two lists together equal to what the installed minijinja has.
"""


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


FILTERS = _names(
    """
    abs batch bool capitalize count d default dictsort e escape filesizeformat first float groupby indent int items
    join last length lines list lower map max min pluralize reject rejectattr replace reverse round safe select
    selectattr slice sort split string striptags sum title tojson trim truncate unique upper urlencode wordwrap
    """
)
# `format` pads to any width ('%500000000s'), `attr` looks up what the scan cannot see.
REFUSED_FILTERS = frozenset({"attr", "chain", "format", "pprint", "zip"})

TESTS = _names(
    """
    boolean defined divisibleby endingwith eq equalto escaped even false float ge greaterthan gt in int integer
    iterable le lessthan lower lt mapping ne none number odd safe sameas sequence startingwith string true undefined
    upper
    """
)
# Those spelt as signs serve select("<", 3).
SIGN_TESTS = frozenset({"!=", "<", "<=", "==", ">", ">="})
REFUSED_TESTS = frozenset({"filter", "test"})

FUNCTIONS = frozenset({"dict", "namespace", "range"})
# `debug` prints everything there is.
REFUSED_FUNCTIONS = frozenset({"cycler", "debug", "joiner"})

LOOP_METHODS = frozenset({"changed", "cycle"})

STATEMENTS = _names(
    """
    break continue elif else endfilter endfor endif endmacro endset endwith filter for if macro set with
    """
)
