package config

import "io/fs"

// AllBundles is the folder that holds bundles/.
func AllBundles() fs.FS { return bundles }
