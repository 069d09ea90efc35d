package host

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tetratelabs/wazero/sys"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/plugins/manifest"
	"github.com/loadstone-db/loadstone/sdk/abi"
)

// fail makes the error of a plugin: a sentence for the user around a sentinel.
func fail(sentinel error, format string, args ...any) error {
	code := engine.CodePlugin
	if errors.Is(sentinel, plugin.ErrNotFound) {
		code = engine.CodeNotFound
	}
	return &engine.Error{Code: code, Message: fmt.Sprintf(format, args...), Cause: sentinel}
}

func refuse(format string, args ...any) error {
	return fail(plugin.ErrRefused, "The file is not a plugin that this version accepts: "+format+".", args...)
}

// trap explains why a call into a guest did not return.
func (i *instance) trap(export string, err error) error {
	name := i.module.name
	message := ""
	if s := i.log.failureText(); s != "" {
		message = " It said: " + s
	}
	short, exit := new(engine.Error), new(sys.ExitError)
	refused := errors.As(i.tank.short, &short)
	words := message
	if refused {
		message += " It was refused memory before: " + short.Message
	}
	switch {
	case !refused && errors.As(err, &exit):
		return fail(plugin.ErrTrapped, "Plugin %s called exit(%d) in %s.%s", name, exit.ExitCode(), export, message)
	case i.tank.late:
		return fail(plugin.ErrOutOfTime, "Plugin %s computed for more than %s in %s, perhaps without end.%s",
			name, timeFor(export), export, message)
	case i.tank.fuel != nil && i.tank.remaining() < 0:
		return fail(plugin.ErrOutOfFuel, "Plugin %s ran out of fuel in %s: it computed longer than its "+
			"%d million units of fuel last, perhaps without end.%s", name, export, i.tank.given/1_000_000, message)
	case i.tank.depth != nil && i.tank.tooDeep() || strings.HasPrefix(err.Error(), "wasm error: stack overflow"):
		return fail(plugin.ErrTooDeep, "Plugin %s nested its calls too deep in %s (the limit is %d calls, "+
			"fewer with large frames), perhaps a recursion without end.%s", name, export, callDepth, message)
	case refused:
		// However it ended then, by a trap or with exit(2) as Go's runtime does, that is the reason.
		ended := *short
		ended.Message += " It ended in " + export + "." + words
		return &ended
	}
	// wazero appends the guest's stack; its first line says what happened.
	reason, _, _ := strings.Cut(err.Error(), "\n")
	reason = strings.TrimPrefix(reason, "wasm error: ")
	return fail(plugin.ErrTrapped, "Plugin %s trapped in %s: %s.%s", name, export, manifest.Clean([]byte(reason), 300),
		message)
}

// ErrReported is an ErrFailed that the guest itself asked for, through ls_error.
var ErrReported = fmt.Errorf("in its own words: %w", plugin.ErrFailed)

// reported turns a guest's own error into ours. What a guest says after it was refused
// memory is rarely more than that: then the reason is the refusal, with its limit.
func (i *instance) reported(export string) error {
	message, short := "", i.tank.short
	if i.errorFn != nil {
		if v, err := i.call(i.errorFn, abi.ExportError, min(i.callFuel, fillFuel)); err == nil {
			ptr, n := abi.Unpack(int64(v))
			if b, ok := i.appendMemory(nil, ptr, min(n, 4*abi.MaxErrorMessage)); ok {
				message = manifest.Clean(b, abi.MaxErrorMessage)
			}
		}
	}
	if message == "" {
		message = "it gave no reason"
	}
	if refused := new(engine.Error); errors.As(short, &refused) {
		output := *refused
		output.Message += " In " + export + " it reported: " + message
		return &output
	}
	return fail(ErrReported, "Plugin %s reports: %s", i.module.name, message)
}
