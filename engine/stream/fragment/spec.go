package fragment

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/loadstone-db/loadstone/engine/stream/catalog"
	"github.com/loadstone-db/loadstone/engine/stream/connector"
	"github.com/loadstone-db/loadstone/engine/stream/plan"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
)

// Spec is all that a worker needs to run its fragment of a query.
type Spec struct {
	Key
	// Host is the worker that it is for.
	Host string
	// Query, Contents and Tail are the query, what its statement names, and where its tail runs. Of the sink that has
	// what is to be opened only at the tail.
	Query    catalog.Query
	Contents catalog.Contents
	Tail     string
	// Hosts are the workers of the query.
	Hosts []string
	// Shape is a sum of the plan. A worker that plans otherwise refuses.
	Shape string
}

// Bound is a spec with its plan.
type Bound struct {
	Spec
	Plan *plan.Plan
	Sink catalog.Sink
	// Origins are the physical sources of each scan of the plan, with where they are read.
	Origins [][]catalog.Origin
}

// Plan binds a query of the catalog, for the attempt to run it on its workers. The spec is that of the tail.
func Plan(contents catalog.Contents, q catalog.Query, attempt int64) (Bound, error) {
	s := Spec{Key: Key{QueryID: q.ID, Epoch: q.Epoch, Attempt: attempt}, Query: q}
	all := catalog.FromContents(contents)
	sink, there := all.Sink(q.Sink)
	if !there {
		return Bound{}, sql.Errorf(sql.SinkDoesNotExistForQuery, "", -1, "", "there is no sink %s", q.Sink)
	}
	s.Tail = all.TailOf(sink)
	s.Host = s.Tail
	for _, f := range q.Fragments {
		s.Hosts = append(s.Hosts, f.Host)
	}
	s.Contents.Sinks = []catalog.Sink{sink}
	for _, p := range contents.Physical {
		if slices.Contains(q.Sources, p.ID) {
			s.Contents.Physical = append(s.Contents.Physical, p)
		}
	}
	for _, l := range contents.Logical {
		if slices.ContainsFunc(s.Contents.Physical, func(p catalog.PhysicalSource) bool {
			return sql.SameName(p.Logical, l.Name)
		}) {
			s.Contents.Logical = append(s.Contents.Logical, l)
		}
	}
	b, err := s.Bind()
	if err == nil {
		b.Shape = b.shape()
	}
	return b, err
}

// On returns what a worker needs to run its fragment. The plan is the same one: of all workers one may run it.
func (b Bound) On(host string) Bound {
	if b.Host = host; !b.IsTail() {
		// Heads do not write: what the sink is made with, secrets too, is not theirs to know.
		b.Sink.Type, b.Sink.Config = connector.Print, connector.Config{}
		b.Contents.Sinks = []catalog.Sink{b.Sink}
	}
	return b
}

// shape is a sum of the plan, and of who reads what every worker tells of itself: another version may have it read
// somewhere else.
func (b Bound) shape() string {
	text := b.Plan.Shape()
	for i, origins := range b.Origins {
		for _, o := range origins {
			if o.Source.OnEveryWorker() {
				text += fmt.Sprintf("%d %d %q\n", i, o.Source.ID, o.Host)
			}
			if o.Source.Config.String("SOURCE.RUN_ID") != "" {
				text += "of one run\n" // a version that does not know that would tell of all
			}
		}
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// Bind plans the query on the worker that the spec was sent to. The plan is for one run.
func (s Spec) Bind() (Bound, error) {
	b := Bound{Spec: s}
	all := catalog.FromContents(s.Contents)
	var err error
	if b.Plan, err = all.Plan(s.Query); err != nil {
		return b, err
	}
	b.Sink, _ = all.Sink(s.Query.Sink)
	for _, scan := range b.Plan.Scans {
		b.Origins = append(b.Origins, all.Origins(scan.Source, s.Hosts))
	}
	if s.Shape != "" && s.Shape != b.shape() {
		return b, sql.Errorf(sql.PlacementError, "", -1, "run the same version on servers and nodes",
			"the worker %s plans this query otherwise than the server", s.Host)
	}
	return b, nil
}

// IsTail reports whether the tail of the query is here.
func (s Spec) IsTail() bool { return sql.SameName(s.Tail, s.Host) }

// document is a spec as it travels.
type document struct {
	Key       `json:"key"`
	Host      string     `json:"host"`
	Name      string     `json:"name"`
	CreatedBy string     `json:"created_by,omitempty"`
	CreatedID string     `json:"created_by_id,omitempty"`
	Statement string     `json:"statement"`
	Tail      string     `json:"tail"`
	Hosts     []string   `json:"hosts"`
	Shape     string     `json:"shape"`
	Logical   []logical  `json:"logical_sources"`
	Physical  []physical `json:"physical_sources"`
	Sink      sink       `json:"sink"`
}

type logical struct {
	Name   string          `json:"name"`
	Schema json.RawMessage `json:"schema"`
}

type physical struct {
	ID        int64           `json:"id"`
	Logical   string          `json:"logical_source"`
	Placement string          `json:"placement,omitempty"`
	Type      string          `json:"type"`
	Config    json.RawMessage `json:"config"`
	Parser    json.RawMessage `json:"parser"`
}

type sink struct {
	Name   string          `json:"name"`
	Schema json.RawMessage `json:"schema"`
	Type   string          `json:"type"`
	Config json.RawMessage `json:"config"`
}

// Marshal writes a spec as JSON.
func (s Spec) Marshal() ([]byte, error) {
	d := document{
		Key:       s.Key,
		Host:      s.Host,
		Name:      s.Query.Name,
		CreatedBy: s.Query.CreatedBy,
		CreatedID: s.Query.CreatedByID,
		Statement: s.Query.Statement,
		Tail:      s.Tail,
		Hosts:     s.Hosts,
		Shape:     s.Shape,
	}
	for _, l := range s.Contents.Logical {
		schema, err := catalog.MarshalSchema(l.Columns)
		if err != nil {
			return nil, fmt.Errorf("writing a fragment: %w", err)
		}
		d.Logical = append(d.Logical, logical{l.Name, schema})
	}
	for _, p := range s.Contents.Physical {
		own, parser, err := catalog.MarshalConfig(p.Config)
		if err != nil {
			return nil, fmt.Errorf("writing a fragment: %w", err)
		}
		d.Physical = append(d.Physical, physical{p.ID, p.Logical, p.Placement, p.Type, own, parser})
	}
	for _, k := range s.Contents.Sinks {
		schema, err := catalog.MarshalSchema(k.Columns)
		if err != nil {
			return nil, fmt.Errorf("writing a fragment: %w", err)
		}
		own, _, err := catalog.MarshalConfig(k.Config)
		if err != nil {
			return nil, fmt.Errorf("writing a fragment: %w", err)
		}
		d.Sink = sink{k.Name, schema, k.Type, own}
	}
	return json.Marshal(d)
}

// Unmarshal reads what Marshal has written.
func Unmarshal(text []byte) (Spec, error) {
	var d document
	if err := json.Unmarshal(text, &d); err != nil {
		return Spec{}, fmt.Errorf("reading a fragment: %w", err)
	}
	s := Spec{Key: d.Key, Host: d.Host, Tail: d.Tail, Hosts: d.Hosts, Shape: d.Shape,
		Query: catalog.Query{ID: d.QueryID, Epoch: d.Epoch, Name: d.Name, CreatedBy: d.CreatedBy, CreatedByID: d.CreatedID,
			Statement: d.Statement, Sink: d.Sink.Name}}
	for _, l := range d.Logical {
		columns, err := catalog.UnmarshalSchema(l.Schema)
		if err != nil {
			return s, err
		}
		s.Contents.Logical = append(s.Contents.Logical, catalog.LogicalSource{Name: l.Name, Columns: columns})
	}
	for _, p := range d.Physical {
		config, err := catalog.UnmarshalConfig(p.Config, p.Parser)
		if err != nil {
			return s, err
		}
		s.Query.Sources = append(s.Query.Sources, p.ID)
		s.Contents.Physical = append(s.Contents.Physical, catalog.PhysicalSource{ID: p.ID, Logical: p.Logical,
			Placement: p.Placement, Type: p.Type, Config: config})
	}
	columns, err := catalog.UnmarshalSchema(d.Sink.Schema)
	if err != nil {
		return s, err
	}
	config, err := catalog.UnmarshalConfig(d.Sink.Config)
	if err != nil {
		return s, err
	}
	s.Contents.Sinks = []catalog.Sink{{Name: d.Sink.Name, Columns: columns, Type: d.Sink.Type, Config: config}}
	return s, nil
}
