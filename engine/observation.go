package engine

// What the server of a target does while a run goes on, in words that no database has for itself alone. An adapter
// says how it is asked (plugin.ObservePlan); the host asks.

// WaitClass sorts what a session of the server does, or waits for.
type WaitClass string

// The classes. Each moment of an active session belongs to one of them.
const (
	// WaitCPU is a session that runs, or whose wait the server does not tell.
	WaitCPU WaitClass = "cpu"
	// WaitLock is a wait for a lock that another session holds or waits for, on a row or a table.
	WaitLock WaitClass = "lock"
	// WaitLatch is a wait for a short lock in the server's memory.
	WaitLatch WaitClass = "latch"
	// WaitRead and WaitWrite are waits for data to be read from files, or written to them.
	WaitRead  WaitClass = "read"
	WaitWrite WaitClass = "write"
	// WaitSpill is a wait for temporary files.
	WaitSpill WaitClass = "spill"
	// WaitCommit is a wait for the log of changes, as at COMMIT.
	WaitCommit WaitClass = "commit"
	// WaitReplica is a COMMIT that waits for a replica.
	WaitReplica WaitClass = "replica"
	// WaitClient is a session that waits for its client in the middle of a statement.
	WaitClient WaitClass = "client"
	// WaitOther is everything else.
	WaitOther WaitClass = "other"
)

// WaitClasses are all of them, in the order in which charts stack them.
func WaitClasses() []WaitClass {
	return []WaitClass{WaitCPU, WaitLock, WaitCommit, WaitReplica, WaitRead, WaitWrite, WaitSpill, WaitLatch, WaitClient,
		WaitOther}
}

// SessionState is what a session of the server is at.
type SessionState string

// The states.
const (
	SessionActive SessionState = "active"
	SessionIdle   SessionState = "idle"
	// SessionInTransaction has a transaction open and does nothing.
	SessionInTransaction SessionState = "in_transaction"
	// SessionService is one of the server's own, such as what cleans up tables.
	SessionService SessionState = "service"
)

// ActivitySample is one session of the server at one moment.
type ActivitySample struct {
	// Session names it among those of the server.
	Session string
	// Ours: the session is one of the run's connections.
	Ours  bool
	State SessionState
	// Class and Event are what it waits for; Event is the server's own word, "" for WaitCPU.
	Class WaitClass
	Event string
	// Scope is what a lock is on: row or table; "" for another wait.
	Scope string
	// StatementID is a frozen statement of the run; Text another statement, without its values.
	StatementID, Text string
	// Alters: the statement changes a table itself, not rows of it.
	Alters            bool
	Application, User string
	// BlockedBy are the sessions that it waits for.
	BlockedBy []string
	// TransactionSeconds is the age of its transaction, 0 without one.
	TransactionSeconds float64
}

// ServerLook is what the server said at one moment.
type ServerLook struct {
	At Time
	// TookMs is how long the look took.
	TookMs float64
	// Sessions are those that do something. Idle and OtherIdle count the run's and others' that do nothing.
	Sessions        []ActivitySample
	Idle, OtherIdle int
}

// ServerCounter is a number that the server only ever raises, or a gauge, as it was at one moment.
type ServerCounter struct {
	// Name is one of the core's (plugin.Counters); Object is what it is of, "" for the server.
	Name, Object string
	Value        float64
}

// ServerFacts are what an adapter says of a server when it begins to be observed.
type ServerFacts struct {
	// Facts are by the names of plugin's facts, Advice by the rules of findings.
	Facts, Advice map[string]string
	// Missing are sentences on what cannot be seen.
	Missing []string
}

// ServerEvent is something that happened to the server or to what it knows.
type ServerEvent struct {
	At Time `json:"at"`
	// Kind is checkpoint, vacuum, plan, setting, restart or reset.
	Kind string `json:"kind" enum:"checkpoint,vacuum,plan,setting,restart,reset"`
	// Text is a sentence without its point.
	Text string `json:"text"`
	// StatementID is of a plan.
	StatementID string `json:"statement_id,omitempty"`
}

// FindingLevel says how much a finding matters.
type FindingLevel string

// The levels.
const (
	// LevelFinding names a cause of slowness.
	LevelFinding FindingLevel = "finding"
	// LevelNote is worth knowing, and explains nothing by itself.
	LevelNote FindingLevel = "note"
)

// Finding is a cause of slowness in words, or that there is none, or that it could not be seen.
type Finding struct {
	// Rule names what was found: hot_row, idle_in_transaction, commit_bound …
	Rule  string       `json:"rule"`
	Level FindingLevel `json:"level" enum:"finding,note"`
	// Title is a few words, Text one or two sentences with the evidence, Try what may help.
	Title string `json:"title"`
	Text  string `json:"text"`
	Try   string `json:"try,omitempty"`
	// Share is the part of the client's time between From and To that went there, with the bounds of its 95 % interval;
	// null where nothing was measured.
	Share     *float64 `json:"share"`
	ShareLow  *float64 `json:"share_low"`
	ShareHigh *float64 `json:"share_high"`
	// Seconds is the client's time that went there, of all connections together.
	Seconds float64 `json:"seconds"`
	From    Time    `json:"from"`
	To      Time    `json:"to"`
	// Who is behind it, as far as there is somebody.
	Who *FindingSession `json:"who,omitempty"`
	// StatementID is the run's statement that it costs most.
	StatementID string `json:"statement_id,omitempty"`
	// Object is the table, where it is known.
	Object string `json:"object,omitempty"`
}

// FindingSession is a session of the server that is behind a finding.
type FindingSession struct {
	Session     string `json:"session"`
	Application string `json:"application,omitempty"`
	User        string `json:"user,omitempty"`
	// Statement is its text without values.
	Statement string `json:"statement,omitempty"`
	// Ours: it is a connection of the run.
	Ours bool `json:"ours,omitempty"`
}

// ServerTime is where the client's time of the measurement went, in seconds of all connections together. InFlight
// is the sum of the others.
type ServerTime struct {
	InFlight float64 `json:"in_flight_seconds"`
	// Waiting is for a connection or for the generator, Network is between client and server, drivers included.
	Waiting float64 `json:"waiting_seconds"`
	Network float64 `json:"network_seconds"`
	// Classes is the time in the server.
	Classes map[WaitClass]float64 `json:"classes"`
	// Remainder is what is not explained; below 0 the server counted more than the client.
	Remainder float64 `json:"remainder_seconds"`
	// RemainderPct is its absolute size, in stretches of five seconds, in percent of InFlight.
	RemainderPct float64 `json:"remainder_pct"`
	// Seconds of the measurement were looked at, and Unseen were not.
	Seconds int `json:"seconds"`
	Unseen  int `json:"unseen"`
	// Looks is how often the server was asked, LookMs how long a look took in the middle, LooksPerSecond how often
	// at last.
	Looks          int64   `json:"looks"`
	LookMs         float64 `json:"look_ms"`
	LooksPerSecond float64 `json:"looks_per_second"`
}

// ServerSecond is one second, or several, of the server's view of a run.
type ServerSecond struct {
	// At is its beginning, ElapsedSeconds that since the run's start; it is Seconds long.
	At             Time    `json:"at"`
	ElapsedSeconds float64 `json:"elapsed_seconds"`
	Seconds        float64 `json:"seconds"`
	// Looks is how often the server was asked in it; 0 is a gap, of which nothing is known.
	Looks int `json:"looks"`
	// Ours and Others are average active sessions by class, of the run and of everybody else.
	Ours   map[WaitClass]float64 `json:"ours"`
	Others map[WaitClass]float64 `json:"others"`
	// InFlight is how many operations the clients had under way on average; null while the run goes on.
	InFlight *float64 `json:"in_flight"`
	// Slow: operations took longer than in the run's healthy seconds.
	Slow bool `json:"slow,omitempty"`
}

// ServerView is what the server of a run's target did, and what follows from it.
type ServerView struct {
	// Observed: somebody looked. Reason says why not, or what could not be seen.
	Observed bool     `json:"observed"`
	Reason   string   `json:"reason,omitempty"`
	Missing  []string `json:"missing" nullable:"false"`
	// Live: the run goes on, and findings are of what was seen so far.
	Live     bool           `json:"live"`
	Findings []Finding      `json:"findings" nullable:"false"`
	Time     *ServerTime    `json:"time"`
	Seconds  []ServerSecond `json:"seconds" nullable:"false"`
	Events   []ServerEvent  `json:"events" nullable:"false"`
	// Blockers are sessions that others wait for, at the latest moment.
	Blockers []Blocker `json:"blockers" nullable:"false"`
}

// Blocker is a session that others wait for, with those that wait for it.
type Blocker struct {
	FindingSession
	State SessionState `json:"state" enum:"active,idle,in_transaction,service"`
	// BlockedBy is the session that this one waits for in turn, "" at the root of the tree.
	BlockedBy string `json:"blocked_by,omitempty"`
	// Waiting is how many sessions wait for it, directly or behind others.
	Waiting int `json:"waiting"`
	// TransactionSeconds is the age of its transaction.
	TransactionSeconds float64 `json:"transaction_seconds"`
}
