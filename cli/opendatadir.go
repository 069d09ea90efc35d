package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/cli/wiring"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/storage/embedded"
)

// OpenDataDir opens the data directory of the flags for what only reads: one that holds nothing stays as it is. done
// closes it.
func OpenDataDir(e *terminal.Env, flags wiring.StoreFlags) (s *wiring.Services, done func(), err error) {
	if flags.DataDir == "" {
		flags.DataDir = wiring.DefaultDataDir()
	}
	url, err := flags.URL()
	if err == nil && url == "" {
		err = embedded.CheckExists(flags.DataDir)
	}
	if err != nil {
		return nil, nil, err
	}
	s, err = wiring.Open(e.Ctx, wiring.Options{Store: flags, Version: e.Version, Log: zerolog.Nop(),
		Lease: e.Lease, PluginCache: e.PluginCache})
	if err != nil {
		return nil, nil, serverInUseHint(err)
	}
	return s, func() { closeServices(e, s) }, nil
}

func closeServices(e *terminal.Env, s *wiring.Services) {
	closing, cancel := context.WithTimeout(context.WithoutCancel(e.Ctx), time.Minute)
	defer cancel()
	if err := s.Close(closing); err != nil {
		e.Log.Warn().Err(err).Msg("closing")
	}
}

// serverInUseHint says of a data directory that is in use how its server is asked.
func serverInUseHint(err error) error {
	var busy *engine.Error
	if !errors.As(err, &busy) || busy.Code != engine.CodeConflict {
		return err
	}
	message := *busy
	message.Hint = "where that is a server, ask it: --server URL --token TOKEN (loadstone token NAME makes one)"
	return &message
}

// CheckRunID is an error where a text is no id of a run.
func CheckRunID(text string) error {
	if uuid.Validate(text) == nil {
		return nil
	}
	return &engine.Error{Code: engine.CodeInvalid, Message: fmt.Sprintf("%s is not the id of a run.", text),
		Hint: "give all of it: it has the form 0a1b2c3d-…, and stands in the address of the run's page"}
}

// RunNotFound says which run is not there.
func RunNotFound(id string, err error) error {
	if !engine.HasCode(err, engine.CodeNotFound) {
		return err
	}
	message := *engine.AsError(err)
	message.Message = fmt.Sprintf("There is no run %s.", id)
	message.Hint = "it may have been deleted, or be of another server or data directory (--server, --data-dir)"
	return &message
}
