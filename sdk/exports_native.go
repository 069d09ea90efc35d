//go:build !wasip1

package sdk

// ServeWorkload registers the plugin of a module; natively there is no module,
// and sdktest is given the workload itself.
func ServeWorkload(Workload) {}

// ServeAdapter is ServeWorkload for adapters.
func ServeAdapter(Adapter) {}

// Log does nothing outside a module.
func Log(int32, string) {}
