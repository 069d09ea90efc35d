package engine

// OwnDatabase is a database in which servers keep what is theirs: the control store, or the results. No connection of
// a user may land there, however it is spelled; what it is, is asked of each connection after it was opened.
type OwnDatabase struct {
	// What names it in sentences: "control store", "results database".
	What string
	// SystemID is the system identifier of its Postgres; empty where the login of the server may not ask for it.
	SystemID string
	// OID and Name are the database's in that Postgres.
	OID  uint32
	Name string
	// Owners are roles (their OIDs) who own the database or something in it, and so can change it from any other one.
	Owners []uint32
	// Sealed: the whole Postgres is the server's own, and lets users into its Guests only, each as the user of its name.
	Sealed bool
	Guests []string
	// Socket is the folder of the socket of a Postgres that is sealed.
	Socket string
}
