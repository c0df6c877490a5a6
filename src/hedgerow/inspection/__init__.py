"""What people look at: from released values and public facts alone, so it costs no budget.

explain/    effects of columns and pairs with error bands, contributions of rows
report/     one self-contained page about a model
tree_view/  one tree as text, rules and picture
advice/     how much epsilon is needed
drawing/    the pictures of all of them, as SVG
"""
