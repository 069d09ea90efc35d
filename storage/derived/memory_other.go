//go:build !linux

package derived

import "github.com/jackc/pgx/v5/pgconn"

// Elsewhere than on Linux nothing bounds the memory of another process.
func boundMemory(*pgconn.PgConn, uint64) {}

func mayBound(*pgconn.PgConn) bool { return false }

type processes struct{}

func newProcesses() *processes { return &processes{} }

func (*processes) find(*pgconn.PgConn, bool, uint64) bool { return false }
func (*processes) limit(uint32, uint64)                   {}
func (*processes) free(uint32)                            {}
func (*processes) size(uint32) uint64                     { return 0 }
func (*processes) release()                               {}
