package host

import (
	"context"
	"errors"
	"slices"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
)

// Gate reads a file with the static parser alone: nothing is compiled, and time
// and memory are bounded by the length of the file. An error wraps
// plugin.ErrRefused. Safe in the server's own process, whatever the file is.
func Gate(wasm []byte) error {
	_, _, err := examine(wasm)
	return err
}

// suiteFuel is for each call of the suite but ls_fill: enough for the dearest
// honest call, and less than a run gives, so that a file which never ends is
// refused within a second or two.
const suiteFuel = 1_000_000_000

// SmokeTest runs the suite of Conformance with the plugin's defaults, and refuses the
// file with the first check that fails. It is for a process that may die of it (package
// quarantine): a compiler cannot be stopped. What the guest may do wrong is an
// error that wraps plugin.ErrRefused.
func SmokeTest(ctx context.Context, wasm []byte) (plugin.Info, error) {
	r, err := conformance(ctx, Options{}, wasm, nil, false)
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
		return refusal(r.failure)
	}
	failed := r.Checks[slices.IndexFunc(r.Checks, func(c Check) bool { return !c.Passed })]
	return refuse("it fails the check %q: %s", failed.Name, clean([]byte(failed.Message), 500))
}
