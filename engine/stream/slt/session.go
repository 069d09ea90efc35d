// Package slt runs system-level test files: statements with the rows or the error that they have to give. The catalog
// of a file is empty when it begins, and its sources and sinks lie in a folder of its own; queries run in this process
// until their sources end.
package slt

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"strings"
	"time"

	"github.com/loadstone-db/loadstone/engine/stream/catalog"
	"github.com/loadstone-db/loadstone/engine/stream/connector"
	"github.com/loadstone-db/loadstone/engine/stream/exec"
	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
	"github.com/loadstone-db/loadstone/engine/stream/plan"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
)

// session is a catalog with the means to run its queries.
type session struct {
	catalog *catalog.Catalog
	folder  *connector.Folder
	state   int // bytes of state a query may hold, 0 for the usual
	counts  exec.Counts
	// rows are what the last statements gave, as CSV.
	rows []string
}

// execute carries out statements as one group: what they change in the catalog is kept only when all are right. Queries
// run when all statements have been accepted.
func (s *session) execute(ctx context.Context, source string) error {
	s.rows = nil
	parsed, err := sql.Parse(source)
	if err != nil {
		return err
	}
	next := s.catalog.Clone()
	type pending struct {
		name string
		plan *plan.Plan
		sink string
	}
	var queries []pending
	for _, p := range parsed {
		if _, is := p.Statement.(*sql.Watch); is {
			return sql.Errorf(sql.BinderError, source, 0, "", "WATCH needs a server")
		}
		r, err := next.Apply(source, p)
		if err != nil {
			return err
		}
		switch st := p.Statement.(type) {
		case *sql.CreateQuery:
			queries = append(queries, pending{r.Rows[0][0], r.Plan, st.Select.Into.Text})
			continue
		case *sql.Drop:
			if r.Dropped {
				s.rows = append(s.rows, st.Name.Text)
			}
		}
		for _, row := range r.Rows {
			s.rows = append(s.rows, strings.Join(row, "|"))
		}
	}
	s.catalog = next
	for _, q := range queries {
		err := s.run(ctx, q.plan, q.sink)
		state := catalog.Terminated
		if err != nil {
			state = catalog.Failed
		}
		s.catalog.SetState(q.name, state)
		if err != nil {
			return err
		}
	}
	return nil
}

// run runs a query until its sources end, writes to its sink, and keeps the rows as CSV too.
func (s *session) run(ctx context.Context, p *plan.Plan, name string) error {
	into, _ := s.catalog.Sink(name)
	sink, err := connector.OpenSink(into.Type, into.Config, p.Columns, s.folder, io.Discard)
	if err != nil {
		return unusable(err)
	}
	job := exec.Job{Plan: p, Budget: s.state, Now: time.Now, Out: func(b *column.Batch) error {
		s.keep(b)
		return sink.Write(b)
	}}
	for _, scan := range p.Scans {
		var open []connector.Source
		for _, physical := range s.catalog.Physical(scan.Source) {
			source, err := connector.Open(ctx, physical.Type, ending(physical.Config), scan.Columns, s.folder, nil)
			if err != nil {
				for _, o := range append(open, flat(job.Sources)...) {
					_ = o.Close()
				}
				_ = sink.Close()
				return unusable(err)
			}
			open = append(open, source)
		}
		job.Sources = append(job.Sources, open)
	}
	s.counts, err = exec.Run(ctx, job)
	if closing := sink.Close(); err == nil {
		err = closing
	}
	return err
}

// ending are settings of a source that ends: nobody would drop a query that goes on for ever.
func ending(c connector.Config) connector.Config {
	c = maps.Clone(c)
	c["SOURCE.RECONNECT"], c["SOURCE.FOLLOW"] = false, false
	return c
}

func flat(lists [][]connector.Source) (all []connector.Source) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

// unusable is the error of a source or sink that can not be opened.
func unusable(err error) error {
	kind := sql.NetworkError
	if errors.Is(err, connector.ErrPath) {
		kind = sql.InvalidConfig
	}
	e := sql.Errorf(kind, "", -1, "", "%v", err)
	e.Cause = err
	return e
}

func (s *session) keep(b *column.Batch) {
	for i := range b.N {
		var line []byte
		for c := range b.Cols {
			if c > 0 {
				line = append(line, ',')
			}
			line = connector.AppendCSV(line, &b.Cols[c], i)
		}
		s.rows = append(s.rows, string(bytes.ReplaceAll(line, []byte("\n"), []byte(`\n`))))
	}
}
