"""Data sets as environments: inside the package, from scikit-learn, or from files of the user."""
