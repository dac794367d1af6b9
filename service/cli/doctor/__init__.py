"""What `dragoman doctor` looks at: the machine, the files and ports of the settings, the bundles, the device."""
