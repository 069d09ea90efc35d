package trial

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/plugins/host"
	"github.com/loadstone-db/loadstone/plugins/manifest"
)

// suiteFuel is for each call of the suite but ls_fill: enough for the dearest
// honest call, and less than a run gives, so that a file which never ends is
// refused within a second or two.
const suiteFuel = 1_000_000_000

// SmokeTest runs the suite of Conformance with the plugin's defaults, and refuses the
// file with the first check that fails. It is for a process that may die of it (package
// quarantine): a compiler cannot be stopped. What the guest may do wrong is an
// error that wraps plugin.ErrRefused.
func SmokeTest(ctx context.Context, wasm []byte) (plugin.Info, error) {
	r, err := conformance(ctx, host.Options{}, wasm, nil, false)
	if err != nil {
		return plugin.Info{}, err
	}
	if !r.Passed {
		return plugin.Info{}, r.refusal()
	}
	return r.Info, nil
}

// refusal is the first check that failed, as the refusal of a file.
func (r *Report) refusal() error {
	if errors.As(r.failure, new(*engine.Error)) {
		return host.AsRefused(r.failure)
	}
	failed := r.Checks[slices.IndexFunc(r.Checks, func(c Check) bool { return !c.Passed })]
	return host.AsRefused(&engine.Error{Code: engine.CodePlugin,
		Message: fmt.Sprintf("it fails the check %q: %s.", failed.Name, manifest.Clean([]byte(failed.Message), 500))})
}
