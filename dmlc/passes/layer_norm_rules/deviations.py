"""The operations that write a deviation, or one over it: what a product that may be a normalization is fed by.

They stand apart from the rules, because the package names them before it loads any rule.
"""

from dmlc.ops.binary import ADD, DIV, MUL, POW, SUB
from dmlc.ops.choose import CAST
from dmlc.ops.elementwise import RECIPROCAL, SQRT
from dmlc.ops.move import EXPAND

#: The operations that a deviation can end with, and those that one over a deviation can.
DEVIATES = (SQRT, POW, ADD, SUB, CAST, EXPAND)
INVERTS = (SQRT, POW, RECIPROCAL, DIV, CAST, EXPAND)
#: What feeds a product with, or a quotient by, one of these.
BY_DEVIATION = (*DEVIATES, *INVERTS, MUL)
