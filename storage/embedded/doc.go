// Package embedded runs a private Postgres from the binaries installed on the
// machine, so that a laptop and production speak the same SQL.
//
// # Where things are
//
// The cluster lives in DataDir/postgres, its log in DataDir/postgres.log. Postgres
// refuses to run as root; a root caller therefore runs it as the user postgres
// (or nobody), and when that user cannot reach DataDir, the cluster moves to a
// folder it can reach, which is logged and told by Postgres.Dir. There is no
// TCP unless Options.Listen says so, and then for logins that read results alone:
// the only other way in is a unix socket in a folder of mode 0700, and the
// roles behind it take a random password, which lies in DataDir/postgres.secret
// beside the key. The one exception is the role playground, which is admitted by
// the credentials of the operating-system user that runs Loadstone (or root),
// because everybody may see its connection. The role loadstone owns the control
// store; playground owns the sample target, and the role snowsim the database behind
// the stand-in for a Snowflake account. Neither can connect to any other database, so
// that a workload on them cannot touch the control store. A cluster of an earlier
// version, or one whose secret was lost, is taught a new password when it starts.
//
// # Life
//
// Start takes a lock on DataDir, so that one process supervises a cluster. What
// an earlier, killed process left behind is recognised by its working
// directory and executable, and stopped. The postmaster is a child with a
// parent-death signal: when Loadstone is killed, Postgres shuts down by itself.
// A postmaster that dies is started again with back-off, after its lingering
// children are gone. It is ready when its own pid file says so and a
// connection was served, never because some socket answered.
package embedded
