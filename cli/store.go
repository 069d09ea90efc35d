package cli

import (
	"context"
	"errors"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/storage/embedded"
)

// controlURL is how the control store of a data directory is reached: that of the flags, else the embedded one, which
// is started where no server runs it. alone refuses one that a server runs. done ends what was started.
func controlURL(ctx context.Context, given, dir string, alone bool, log zerolog.Logger) (url string, done func(),
	err error) {
	if given != "" {
		lock, err := embedded.Lock(dir)
		if err != nil && alone {
			return "", nil, err
		}
		return given, func() {
			if lock != nil {
				_ = lock.Close() // it ends with the process
			}
		}, nil
	}
	pg, err := embedded.Start(ctx, embedded.Options{DataDir: dir, Log: log})
	if err == nil {
		return pg.DSN(embedded.ControlDatabase), func() { _ = pg.Stop(context.WithoutCancel(ctx)) }, nil
	}
	var busy *engine.Error
	if alone || !errors.As(err, &busy) || busy.Code != engine.CodeConflict {
		return "", nil, err
	}
	url, err = embedded.RunningDSN(dir, embedded.ControlDatabase)
	return url, func() {}, err
}
