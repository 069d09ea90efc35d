package snowflake

import (
	"errors"
	"strconv"

	"github.com/loadstone-db/loadstone/sdk/jsondoc"
)

// session answers what runs on every connect: nothing. What all sessions need
// (no result cache, UTC, the tag of the run, the time limit of a statement) goes
// with the login, which costs no statement. Snowflake has one isolation level.
func (a Adapter) session(req *jsondoc.Value, w *jsondoc.Writer) error {
	level := req.Get("isolation_level").Str()
	if level != "" && level != "read committed" {
		return errors.New("Snowflake has no isolation level " + strconv.Quote(level) + ", only read committed")
	}
	w.Object().Key("session").Array().EndArray()
	if level != "" {
		w.Key("isolation_level").Str(level)
	}
	w.EndObject()
	return nil
}
