"""The operator's console: pages without scripts, for keys of the role admin.

* ``facts``: what pages show, gathered by the owner.
* ``pages``, ``charts``, ``style.css``: how they show it.
* ``forms``: which forms a page has, and whether one that comes back is its own.
* ``routes``: addresses.
"""
