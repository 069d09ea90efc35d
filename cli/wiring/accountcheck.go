package wiring

import (
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/target"
)

// AccountCheck is what a check of an account needs.
type AccountCheck struct {
	// DSN leads to the account, and Database is opened with it.
	DSN      secret.Secret
	Database target.Database
	// Options say how the process carries its runs; its store is one of the check's own.
	Options Options
	// Progress receives a line for each step of the check; nil receives none.
	Progress func(sentence string)
}

// AccountFindings are what a check has found.
type AccountFindings struct {
	// Text is the file to hand on, Summary a sentence for the terminal.
	Text    []byte
	Summary string
	// Conforms: nothing was found to be other than assumed.
	Conforms bool
}
