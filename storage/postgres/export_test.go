package postgres

import "context"

// CheckSchema reports whether a database says that it has this binary's
// schema, as Open does.
func CheckSchema(ctx context.Context, dsn string) error {
	conn, err := connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer hangUp(conn)
	return checkSchema(ctx, conn)
}
