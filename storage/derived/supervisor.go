// This part bounds the sessions of readers from outside: by their time, whatever they have set it to, and, where the
// server is on this machine, by the memory of their processes, which Postgres does not bound.

package derived

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/storage/resultsrole"
)

// SessionLimits bound the sessions of the reader, and those of logins that are members of it.
type SessionLimits struct {
	// Login is how long a statement of a login may go on, IdleInTransaction and Idle how long a session may do nothing.
	Login, IdleInTransaction, Idle time.Duration
	// Grace is how much longer something is waited for that has been cancelled, until its session is ended.
	Grace time.Duration
	// QueryMemory and DefinitionMemory are what a process that executes queries, or definitions, may allocate;
	// AllMemory is what all of them may have together.
	QueryMemory, DefinitionMemory, AllMemory uint64
}

// Supervision says how sessions are watched.
type Supervision struct {
	// Own: the server is Loadstone's own, so that processes may be bounded before it is known whose they are.
	Own bool
	// Guard: it is there to bound memory, and ends where it cannot for a while.
	Guard bool
	Log   zerolog.Logger
}

// session is one of a reader.
type session struct {
	PID uint32
	// Leader is the process that a parallel worker works for, of others their own.
	Leader uint32
	// Reader: it is the reader's itself, and none of a login.
	Reader      bool
	Role        string
	Application string
	// State is empty where the owner may not see it.
	State string
	// Active is for how long its statement goes on, Transaction for how long it has been idle in one, Idle for how long
	// there has been none, in seconds.
	Active, InTransaction, Idle float64
}

// OpenGuard opens a results database to supervise its readers, and for nothing else: its schema is not touched. Where
// the memory of its processes cannot be bounded from here that is refused.
func OpenGuard(ctx context.Context, ownerDSN, readerDSN string) (*Database, error) {
	reader, err := parseURL(readerFlag, readerDSN)
	if err != nil {
		return nil, err
	}
	d := &Database{Settings: DefaultSettings(), readerRole: reader.ConnConfig.User}
	if d.owner, err = pool(ctx, ownerFlag, ownerDSN, 1, nil); err != nil {
		return nil, err
	}
	var may bool
	err = d.owner.AcquireFunc(ctx, func(conn *pgxpool.Conn) error {
		may = mayBound(conn.Conn().PgConn())
		return nil
	})
	if err != nil {
		d.Close()
		return nil, connectError(ownerFlag, err)
	}
	if !may {
		d.Close()
		return nil, invalidURL(ownerFlag, nil, "leads to a Postgres whose processes cannot be bounded from here",
			"run this on its machine, as root or as the user of Postgres, and connect by its unix socket or by loopback")
	}
	return d, nil
}

// superviseEvery is how often sessions are looked at.
const superviseEvery = 500 * time.Millisecond

// lookTimeout is how long a look takes at most.
const lookTimeout = 5 * time.Second

// maxUnbounded is how many looks in a row a guard may bound nothing.
const maxUnbounded = 6

// Supervise ends what takes more than it may, until ctx ends. Other servers may do the same. Only a guard returns an
// error, when it bounds nothing any more.
func (d *Database) Supervise(ctx context.Context, s Supervision) error {
	w := &warden{d: d, own: s.Own, guard: s.Guard, log: s.Log, cancelled: map[uint32]time.Time{}, memory: newProcesses()}
	defer w.memory.release()
	defer w.disconnect(ctx)
	tick := time.NewTicker(superviseEvery)
	defer tick.Stop()
	for {
		w.look(ctx)
		if w.guard && w.looks >= maxUnbounded {
			return &engine.Error{Code: engine.CodeUnavailable, Message: "The guard can bound nothing any more: " +
				ownerFlag + " leads to a Postgres whose processes cannot be bounded from here.", Hint: "Run it on the machine " +
				"of that Postgres, as root or as its user, and connect by its unix socket or by loopback."}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// warden watches the sessions of readers.
type warden struct {
	d          *Database
	own, guard bool
	// looks are how many in a row have bounded nothing of a Postgres that answered.
	looks int
	log   zerolog.Logger
	// cancelled are sessions whose statement was cancelled, by process id.
	cancelled map[uint32]time.Time
	memory    *processes
	// told: that something cannot be seen or done, which is told once. unbounded: that nobody bounds memory was.
	told, unbounded bool
	// announced is the connection by whose name others know that memory is bounded.
	announced *pgx.Conn
	// conn is the warden's own; failing while it cannot look.
	conn    *pgx.Conn
	failing bool
}

// look is one round.
func (w *warden) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	conn, err := w.connect(ctx)
	if err != nil {
		w.blind(ctx, err)
		return
	}
	sessions, err := w.sessions(ctx, conn)
	if err != nil {
		w.blind(ctx, err)
		w.disconnect(ctx)
		return
	}
	if w.failing {
		w.failing = false
		w.log.Info().Msg("the sessions of readers are supervised again")
	}
	now := time.Now()
	for _, s := range sessions {
		if s.State == "" {
			w.tell("the owner of the results database cannot see the sessions of its readers, so that their time is not " +
				"bounded from outside: GRANT pg_signal_backend, pg_read_all_stats TO the owner")
			continue
		}
		w.judge(ctx, conn, s, now)
	}
	for pid := range w.cancelled {
		if !slices.ContainsFunc(sessions, func(s session) bool { return s.PID == pid }) {
			delete(w.cancelled, pid)
		}
	}
	w.bound(ctx, conn, sessions)
}

// The names of the connections of wardens, of those who bound memory too: all others see by it that somebody does.
const (
	supervisorName = "loadstone supervisor"
	guardName      = "loadstone supervisor of memory"
)

// connect is the warden's connection, which is one of its own: who takes all others of the owner's does not stop it.
func (w *warden) connect(ctx context.Context) (*pgx.Conn, error) {
	if w.conn != nil && !w.conn.IsClosed() {
		return w.conn, nil
	}
	config := w.d.owner.Config().ConnConfig.Copy()
	config.RuntimeParams["application_name"] = supervisorName
	config.RuntimeParams["statement_timeout"] = strconv.FormatInt(lookTimeout.Milliseconds(), 10)
	var err error
	w.conn, err = pgx.ConnectConfig(ctx, config)
	return w.conn, err
}

func (w *warden) disconnect(ctx context.Context) {
	if w.conn != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = w.conn.Close(ctx)
		w.conn = nil
	}
}

// blind says once that sessions could not be looked at, until they can be again.
func (w *warden) blind(ctx context.Context, err error) {
	if w.failing || errors.Is(ctx.Err(), context.Canceled) {
		return
	}
	w.failing = true
	w.log.Warn().Err(err).Msg("the sessions of readers could not be read; their time and memory are not bounded meanwhile")
}

func (w *warden) tell(message string) {
	if !w.told {
		w.told = true
		w.log.Warn().Msg(message)
	}
}

// sessions are those of readers: of the role, and of its members' logins.
func (w *warden) sessions(ctx context.Context, conn *pgx.Conn) ([]session, error) {
	rows, err := conn.Query(ctx, `SELECT a.pid, coalesce(a.leader_pid, a.pid), a.usename = $1, a.usename::text,
			coalesce(a.application_name, ''), coalesce(a.state, ''),
			CASE WHEN a.state = 'active' THEN extract(epoch FROM clock_timestamp() - a.query_start)::float8 ELSE 0 END,
			CASE WHEN starts_with(a.state, 'idle in')
				THEN extract(epoch FROM clock_timestamp() - a.state_change)::float8 ELSE 0 END,
			CASE WHEN a.state = 'idle' THEN extract(epoch FROM clock_timestamp() - a.state_change)::float8 ELSE 0 END
		FROM pg_stat_activity a JOIN pg_roles u ON u.oid = a.usesysid, pg_roles r
		WHERE a.datname = current_database() AND r.rolname = $1
			AND a.backend_type IN ('client backend', 'parallel worker') AND `+resultsrole.IsLogin("current_user"),
		w.d.readerRole)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[session])
}

// judge ends what has had its time: a statement is cancelled, and its session ended when that does not help.
func (w *warden) judge(ctx context.Context, conn *pgx.Conn, s session, now time.Time) {
	limits := w.d.Settings.Sessions
	seconds := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	most := limits.Login
	switch {
	case s.Reader && !defines(s):
		most = w.d.Settings.Query.Statement + limits.Grace
	case s.Reader:
		most = w.d.Settings.Definition.Statement + limits.Grace
	}
	switch {
	case seconds(s.Active) > most:
		at, was := w.cancelled[s.PID]
		if !was {
			w.cancelled[s.PID] = now
			w.end(ctx, conn, s, "pg_cancel_backend", "its statement takes longer than it may", nil)
		} else if now.Sub(at) > limits.Grace {
			w.end(ctx, conn, s, "pg_terminate_backend", "its statement does not end", nil)
		}
		return
	case seconds(s.InTransaction) > limits.IdleInTransaction:
		w.end(ctx, conn, s, "pg_terminate_backend", "it stands still in a transaction", nil)
	case !s.Reader && seconds(s.Idle) > limits.Idle:
		w.end(ctx, conn, s, "pg_terminate_backend", "it does nothing", nil)
	}
	delete(w.cancelled, s.PID)
}

// end cancels or ends a session; who has a query in it is told what.
func (w *warden) end(ctx context.Context, conn *pgx.Conn, s session, how, why string, says error) {
	if says != nil {
		w.d.ended.Store(s.PID, says)
	}
	var done bool
	if err := conn.QueryRow(ctx, "SELECT "+how+"($1)", int32(s.PID)).Scan(&done); err != nil {
		w.d.ended.Delete(s.PID)
		w.tell("the owner of the results database may not end sessions of its readers: " + err.Error())
		return
	}
	w.log.Warn().Uint32("pid", s.PID).Str("role", s.Role).Str("how", how).Msg("a session of a reader was ended: " + why)
}

// bound bounds the memory of the processes of sessions, and ends the largest while all of them have more than they may.
func (w *warden) bound(ctx context.Context, conn *pgx.Conn, sessions []session) {
	limits := w.d.Settings.Sessions
	if !w.memory.find(conn.PgConn(), w.own, 2*limits.QueryMemory) {
		if w.looks++; !w.guard {
			w.lookForGuard(ctx, conn)
		} else if w.looks == 1 {
			w.log.Warn().Msg("the memory of readers of the results database cannot be bounded from here now")
		}
		return
	}
	w.looks = 0
	if w.announced != conn {
		if _, err := conn.Exec(ctx, "SET application_name = '"+guardName+"'"); err == nil {
			w.announced = conn
		}
	}
	// What parallel workers have counts as their leader's.
	leaders := slices.DeleteFunc(slices.Clone(sessions), func(s session) bool { return s.PID != s.Leader })
	sizes := map[uint32]uint64{}
	for _, s := range sessions {
		most := limits.QueryMemory
		if slices.ContainsFunc(leaders, func(l session) bool { return l.PID == s.Leader && defines(l) }) {
			most = limits.DefinitionMemory
		}
		w.memory.limit(s.PID, most)
		sizes[s.Leader] += w.memory.size(s.PID)
	}
	w.freeOthers(ctx, conn)
	for _, s := range excess(leaders, sizes, limits) {
		w.end(ctx, conn, s, "pg_terminate_backend", fmt.Sprintf("the sessions of readers have more than %d MB together, "+
			"and it has %d", limits.AllMemory>>20, sizes[s.PID]>>20), errMemoryOfAll)
	}
}

// lookForGuard says once that nobody bounds the memory of readers, until somebody does.
func (w *warden) lookForGuard(ctx context.Context, conn *pgx.Conn) {
	if w.own {
		return
	}
	var guarded bool
	if err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_stat_activity
		WHERE datname = current_database() AND usename = current_user AND application_name = $1)`, guardName).
		Scan(&guarded); err != nil {
		return
	}
	switch {
	case guarded && w.unbounded:
		w.log.Info().Msg("the memory of readers of the results database is bounded again, on its machine")
	case !guarded && !w.unbounded:
		w.log.Warn().Msg("nothing bounds the memory of readers of the results database: it is on another machine, or this " +
			"user may not bound its processes; run `loadstone results-guard` on that machine")
	}
	w.unbounded = !guarded
}

// excess are the sessions that are ended so that the rest have no more than they may together: the largest first, and
// none whose end is not needed. Where the end of large sessions of others is enough, definitions go on: what somebody
// asks is no reason why a table is not refreshed.
func excess(sessions []session, sizes map[uint32]uint64, limits SessionLimits) (ended []session) {
	large := limits.QueryMemory / 4
	var all, freed uint64
	var others []session
	for _, s := range sessions {
		size := sizes[s.PID]
		all += size
		if size >= large && !defines(s) {
			others = append(others, s)
			freed += size
		}
	}
	if all <= limits.AllMemory {
		return nil
	}
	over := all - limits.AllMemory
	if freed < over {
		others = slices.Clone(sessions)
	}
	slices.SortFunc(others, func(a, b session) int { return cmp.Compare(sizes[b.PID], sizes[a.PID]) })
	freed = 0
	for _, s := range others {
		if freed >= over {
			break
		}
		ended = append(ended, s)
		freed += sizes[s.PID]
	}
	return ended
}

// freeOthers lets processes that are no readers' allocate what they want: those of which that is known for sure.
func (w *warden) freeOthers(ctx context.Context, conn *pgx.Conn) {
	if !w.own {
		return
	}
	rows, err := conn.Query(
		ctx,
		`SELECT a.pid FROM pg_stat_activity a LEFT JOIN pg_roles u ON u.oid = a.usesysid, pg_roles r
		WHERE r.rolname = $1 AND (a.backend_type NOT IN ('client backend', 'parallel worker')
			OR NOT (`+resultsrole.IsLogin("current_user")+`))`,
		w.d.readerRole,
	)
	if err != nil {
		return
	}
	pids, err := pgx.CollectRows(rows, pgx.RowTo[int32])
	if err != nil {
		return
	}
	for _, pid := range pids {
		w.memory.free(uint32(pid))
	}
}

// defines tells sessions that may execute definitions.
func defines(s session) bool {
	return s.Reader && !strings.HasPrefix(s.Application, consoleName)
}

// errMemoryOfAll is what a query hears whose session was ended for its memory.
var errMemoryOfAll = &engine.Error{Code: engine.CodeInvalid, Cause: errors.New("ended by the supervisor"),
	Message: "The SQL was ended: all queries together took more memory than they may, and it had most of it.",
	Hint:    "Build smaller values and lists, and send fewer queries at a time."}
