"""Tasks that a maintainer meets, each as a patch with its tests."""
