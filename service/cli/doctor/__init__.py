"""The checks of `dragoman doctor`: the machine, the files and ports of the settings, the bundles, the device."""
