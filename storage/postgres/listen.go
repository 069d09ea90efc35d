package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loadstone-db/loadstone/storage/postgres/dberr"
)

// maxListenIdle is how long nothing may be heard until the connection is asked whether it is there.
const maxListenIdle = 30 * time.Second

// listen calls heard once it listens to a channel, on a connection of its own, so that none is taken that others wait
// for, and for each notification, until ctx ends or the connection is lost; what says to what it listens.
func listen(ctx context.Context, pool *pgxpool.Pool, channel, what string, heard func()) error {
	conn, err := pgx.ConnectConfig(ctx, pool.Config().ConnConfig.Copy())
	if err != nil {
		return dberr.Failed(what, err)
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(closing)
	}()
	if _, err := conn.Exec(ctx, "LISTEN "+channel); err != nil {
		return dberr.Failed(what, err)
	}
	heard()
	for {
		waiting, cancel := context.WithTimeout(ctx, maxListenIdle)
		_, err := conn.WaitForNotification(waiting)
		cancel()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil:
			heard()
		case !errors.Is(err, context.DeadlineExceeded):
			return dberr.Failed(what, err)
		default:
			asking, cancel := context.WithTimeout(ctx, maxListenIdle)
			err := conn.Ping(asking)
			cancel()
			if err != nil {
				return dberr.Failed(what, err)
			}
		}
	}
}
