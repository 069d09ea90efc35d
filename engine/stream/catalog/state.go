package catalog

import (
	"slices"
	"time"

	"github.com/loadstone-db/loadstone/engine/stream/sql"
)

// WorkerState says whether a worker takes fragments.
type WorkerState string

// The states of a worker.
const (
	Active WorkerState = "ACTIVE"
	// Draining: nothing new is placed on it. What is there goes on, and begins anew there if it has to: nobody else can
	// read what is read there.
	Draining    WorkerState = "DRAINING"
	Unreachable WorkerState = "UNREACHABLE"
)

// Reachable reports whether the worker is reached.
func (s WorkerState) Reachable() bool { return s == Active || s == Draining }

// State is the state of a query.
type State string

// The states of a query. RUNNING and STOPPED are what can be desired of it. A query that becomes STOPPED is taken out
// of the catalog; one that is TERMINATED or FAILED, or came out of a backup as STOPPED, is kept until it is dropped.
const (
	Pending       State = "PENDING"
	Deploying     State = "DEPLOYING"
	Running       State = "RUNNING"
	Stopping      State = "STOPPING"
	StoppingStuck State = "STOPPING_STUCK"
	Stopped       State = "STOPPED"
	Terminated    State = "TERMINATED"
	Terminating   State = "TERMINATING"
	Failed        State = "FAILED"
	// Suspended queries have lost the rights of their creator; RESUME QUERY has them begin anew, as whoever says it.
	Suspended State = "SUSPENDED"
)

// queryStates and workerStates are all that there are.
var (
	queryStates = []string{string(Pending), string(Deploying), string(Running), string(Stopping), string(StoppingStuck),
		string(Stopped), string(Terminated), string(Terminating), string(Failed), string(Suspended)}
	workerStates = []string{string(Active), string(Draining), string(Unreachable)}
)

// Final reports whether nothing of the query runs any more.
func (s State) Final() bool {
	return s == Stopped || s == Terminated || s == Failed || s == Suspended
}

// FragmentState is the state of a fragment, as its worker tells it.
type FragmentState string

// The states of a fragment. One that is REGISTERED has not been sent to its worker; STARTED has been, and is not known
// to run.
const (
	FragmentRegistered FragmentState = "REGISTERED"
	FragmentStarted    FragmentState = "STARTED"
	FragmentRunning    FragmentState = "RUNNING"
	FragmentStopped    FragmentState = "STOPPED"
	FragmentTerminated FragmentState = "TERMINATED"
	FragmentFailed     FragmentState = "FAILED"
)

// Final reports whether the fragment is gone from its worker.
func (s FragmentState) Final() bool {
	return s == FragmentStopped || s == FragmentTerminated || s == FragmentFailed
}

// Query is a continuous query.
type Query struct {
	// ID is never given out twice; Name is another query's once this one is gone.
	ID        int64
	Name      string
	Statement string
	Sink      string
	// Sources are the ids of the physical sources that it reads.
	Sources []int64
	State   State
	// Desired is Running, Stopped or Suspended; Graceful says that sources stop first and rows on their way reach the
	// sink.
	Desired  State
	Graceful bool
	// Since is when the state became what it is.
	Since time.Time
	// Failure is why it FAILED or was SUSPENDED, or what holds it up.
	Failure   string
	CreatedBy string
	CreatedAt time.Time
	// CreatedByID is the id of the user of that name, Confirmed the ids of production connections whose names were typed.
	CreatedByID string
	Confirmed   []string
	// Owner is the server that moves the query, in its epoch.
	Owner string
	Epoch int64
	// Revision counts what its owners have kept of it, and that it was dropped or has other workers. Who keeps more has
	// to have seen the last of that: an answer may be lost, and what was given up may be kept after all,
	// later than it was looked at.
	Revision  int64
	Fragments []Fragment
}

// Fragment is the part of a query that a worker runs.
type Fragment struct {
	Host  string
	Plan  string // a line for each step
	State FragmentState
	// Attempts is how often it was started; the next one is not before RetryAt.
	Attempts int64
	RetryAt  time.Time
	// Failure is the error of the last attempt; Terminal says that another one is of no use.
	Failure  string
	Terminal bool
}

// TakesSlot reports whether a fragment of the query takes a slot of its worker: it runs there, or it is going to. One
// that has failed and waits for its next attempt keeps its slot, so that there is one when it is started again; so does
// one that has ended before the others, which begins anew with them when one of those is lost.
func (q Query) TakesSlot(f Fragment) bool {
	switch {
	case q.State.Final():
		return false
	case q.Desired == Running && q.State != Terminating:
		return true
	}
	return !f.State.Final()
}

// SetState keeps what became of a query that has no fragments.
func (c *Catalog) SetState(name string, s State) {
	if i := c.query(name); i >= 0 {
		c.queries = slices.Clone(c.queries)
		c.queries[i].State = s
	}
}

// dropQuery says that a query is not wanted any more. One of which nothing runs is gone at once; the name of another is
// taken until all its fragments are.
func (c *Catalog) dropQuery(d *sql.Drop) bool {
	i := c.query(d.Name.Text)
	if i < 0 {
		return false
	}
	if q := c.queries[i]; q.State.Final() || len(q.Fragments) == 0 {
		return remove(&c.queries, i)
	}
	c.dropping(c.queries[i])
	c.queries = slices.Clone(c.queries)
	q := &c.queries[i]
	// Who does not want to wait any longer says it again, without GRACEFUL; not the other way round.
	q.Graceful = d.Graceful && (q.Desired == Running || q.Graceful)
	q.Desired = Stopped
	q.Revision++ // what its owner has decided without knowing it does not count: it may have wanted another slot
	return true
}

// Suspend ends a query of a user that is wanted until somebody resumes it; why is its failure.
func (c *Catalog) Suspend(id int64, userID, why string) {
	i := slices.IndexFunc(c.queries, func(q Query) bool { return q.ID == id })
	if i < 0 || c.queries[i].Desired != Running || c.queries[i].State.Final() || c.queries[i].CreatedByID != userID {
		return
	}
	c.queries = slices.Clone(c.queries)
	q := &c.queries[i]
	q.Desired, q.Failure, q.Graceful = Suspended, why, false
	q.Revision++ // what its owner has decided without knowing it does not count
}

// resumeQuery has a suspended query begin anew, placed as a new one is. It is the author's from then on.
func (c *Catalog) resumeQuery(source string, r *sql.Resume) error {
	i := c.query(r.Name.Text)
	if i < 0 {
		return sql.Errorf(sql.DoesNotExist, source, r.Name.At, "GET QUERIES lists them", "there is no query %s", r.Name.Text)
	}
	q := c.queries[i]
	if q.State != Suspended {
		return sql.Errorf(sql.NameLocked, source, r.Name.At, "RESUME is for a query that is SUSPENDED",
			"the query %s is %s", q.Name, q.State)
	}
	p, err := c.Plan(q)
	if err != nil {
		return err
	}
	if q.Sources = c.reads(p); len(q.Sources) == 0 {
		q.Sources = c.queries[i].Sources
	}
	attempts := int64(0)
	for _, f := range q.Fragments {
		attempts = max(attempts, f.Attempts)
	}
	if q.Fragments, err = c.placeFragments(source, r.At, q.Sink, p); err != nil {
		return err
	}
	for k := range q.Fragments {
		q.Fragments[k].Attempts = attempts // what is left of earlier ones is ended
	}
	if k := c.sink(q.Sink); k >= 0 {
		if err := c.authorizeWrite(source, r.Name.At, &q, c.sinks[k], p); err != nil {
			return err
		}
	}
	q.State, q.Desired, q.Since, q.Failure = Pending, Running, c.at, ""
	q.CreatedBy, q.CreatedByID = c.by.Name, c.by.UserID
	q.Revision++
	c.queries = slices.Clone(c.queries)
	c.queries[i] = q
	return nil
}

// SetDefaultHost says where fragments run that are placed on no worker, which has slots; unless it is called, queries
// have no fragments.
func (c *Catalog) SetDefaultHost(host string, slots int64) {
	c.host = host
	if i := c.worker(host); i < 0 {
		c.workers = append(slices.Clone(c.workers), Worker{Host: host, Slots: slots, State: Active})
	}
}

// Used is how many slots of a worker are taken.
func (c *Catalog) Used(host string) (n int64) {
	for there, slots := range c.usedSlots {
		if sql.SameName(there, host) {
			n += slots
		}
	}
	for _, q := range c.queries {
		for _, f := range q.Fragments {
			if sql.SameName(f.Host, host) && q.TakesSlot(f) {
				n++
			}
		}
	}
	return n
}

// MissingCreates are the statements of a list that create what is not there. Of physical sources it is those whose
// logical source has none.
func (c *Catalog) MissingCreates(list []sql.Parsed) (lacking []sql.Parsed) {
	for _, p := range list {
		there := false
		switch st := p.Statement.(type) {
		case *sql.CreateLogicalSource:
			there = c.logicalSource(st.Name.Text) >= 0
		case *sql.CreatePhysicalSource:
			there = len(c.Physical(st.Logical.Text)) > 0
		}
		if !there {
			lacking = append(lacking, p)
		}
	}
	return lacking
}
