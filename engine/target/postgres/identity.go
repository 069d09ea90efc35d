package postgres

import (
	"context"
	"strconv"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/target"
)

var _ target.Identifier = (*database)(nil)

const (
	identitySQL = `SELECT pg_catalog.pg_is_in_recovery(), pg_catalog.current_setting('server_version'),
	extract(epoch FROM pg_catalog.pg_postmaster_start_time())::text`
	// Not everyone may ask this, and not every server knows it. A primary names its branch before its first checkpoint.
	clusterSQL = `SELECT (SELECT system_identifier::text FROM pg_catalog.pg_control_system()),
	CASE WHEN pg_catalog.pg_is_in_recovery() THEN (SELECT timeline_id::text FROM pg_catalog.pg_control_checkpoint())
	ELSE ('x' || substr(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 1, 8))::bit(32)::int::text END`
)

// Identity implements target.Identifier.
func (d *database) Identity(ctx context.Context) (engine.ServerIdentity, error) {
	c, err := d.borrow(ctx)
	if err != nil {
		return engine.ServerIdentity{}, err
	}
	defer d.give(c)
	rs, err := query(ctx, c, identitySQL, nil)
	if err != nil {
		return engine.ServerIdentity{}, d.explain(err, d.answer)
	}
	if err := shaped(rs, 3); err != nil || len(rs.Rows) != 1 {
		return engine.ServerIdentity{}, &engine.Error{
			Code:    engine.CodeTarget,
			Message: "The server does not tell what it is.",
		}
	}
	id := engine.ServerIdentity{Address: c.Conn().RemoteAddr().String(), Role: "primary"}
	if standby, _ := rs.Rows[0][0].(bool); standby {
		id.Role = "standby"
	}
	id.Version, _ = rs.Rows[0][1].(string)
	started, _ := rs.Rows[0][2].(string)
	if seconds, err := strconv.ParseFloat(started, 64); err == nil {
		id.StartedAt = engine.At(time.UnixMicro(int64(seconds * 1e6)))
	}
	if rs, err = query(ctx, c, clusterSQL, nil); err == nil && shaped(rs, 2) == nil && len(rs.Rows) == 1 {
		id.System, _ = rs.Rows[0][0].(string)
		timeline, _ := rs.Rows[0][1].(string)
		id.Timeline, _ = strconv.ParseInt(timeline, 10, 64)
	}
	return id, nil
}
