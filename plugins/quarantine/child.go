package quarantine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/plugins/trial"
	"github.com/loadstone-db/loadstone/sdk/abi"
)

// Command is the hidden command of the binary that runs Child.
const Command = "plugin-quarantine"

// childAnswer is what the child says. Exactly one of its fields is set.
type childAnswer struct {
	Info *plugin.Info `json:"info,omitempty"`
	// Refused is the sentence of a refusal.
	Refused *engine.Error `json:"refused,omitempty"`
	// Failed is about the machine, not about the file.
	Failed string `json:"failed,omitempty"`
}

// Child limits the process it runs in for good, reads a plugin file from stdin
// and writes an answer to stdout. It is the whole of the command Command; the
// result is the exit code, 0 when there is an answer.
func Child(stdin io.Reader, stdout io.Writer) int {
	a := examine(stdin)
	if err := json.NewEncoder(stdout).Encode(a); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func examine(stdin io.Reader) childAnswer {
	if err := limitSelf(); err != nil {
		return childAnswer{Failed: fmt.Sprintf("limiting the quarantine process: %v", err)}
	}
	wasm, err := io.ReadAll(io.LimitReader(stdin, abi.MaxModuleBytes+1))
	if err != nil {
		return childAnswer{Failed: fmt.Sprintf("reading the file: %v", err)}
	}
	info, err := trial.SmokeTest(context.Background(), wasm)
	switch {
	case err == nil:
		return childAnswer{Info: &info}
	case errors.Is(err, plugin.ErrRefused):
		return childAnswer{Refused: engine.AsError(err)}
	}
	return childAnswer{Failed: err.Error()}
}
