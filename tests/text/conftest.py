"""Puts this folder, and so ``text_helpers``, on the import path of the folders below."""
