// Package noinit turns off, before gosnowflake starts, what gosnowflake does
// on its own account: it asks the cloud's metadata services which platform it
// runs on, and writes a native library into a temporary folder and loads it. Both
// have environment variables only, and the second is read by an init function.
//
// The package imports nothing but os, and packages are initialized in the order
// of their import paths as soon as their imports are: this one comes before
// github.com/snowflakedb/gosnowflake. A test of the driver holds that.
package noinit

import "os"

func init() {
	for _, name := range []string{"SF_DISABLE_MINICORE", "SNOWFLAKE_DISABLE_PLATFORM_DETECTION",
		"SF_TELEMETRY_DISABLE_CONNECTION_SHAPE"} {
		// An operator who sets one on purpose is left alone.
		if _, set := os.LookupEnv(name); !set {
			_ = os.Setenv(name, "true") // fails for malformed names only
		}
	}
}
