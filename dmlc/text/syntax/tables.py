"""The place of Lark's tables: they are kept where the compiled form of this module would be, which nothing imports.

So pip removes them with dmlc. A file that it does not know would leave the folder ``dmlc`` behind, which hides an
editable installation.
"""
