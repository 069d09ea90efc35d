package terminal

import (
	"context"
	"io"
	"os"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/files"
)

// Claim checks, before the work begins, the files that its results shall go to;
// a path of "" is none. When one of them is standard output, nothing else goes
// there from now on: what people read goes to standard error.
func (e *Env) Claim(paths ...string) error {
	var taken []os.FileInfo
	for _, path := range paths {
		if path == "" {
			continue
		}
		if files.IsStdout(path, e.Stdout) || e.results != nil && files.IsStdout(path, e.results) {
			if e.results != nil {
				return claimedTwice("standard output")
			}
			e.results, e.Stdout = e.Stdout, e.Stderr
			continue
		}
		if err := files.Check(path); err != nil {
			return err
		}
		info, err := os.Stat(path)
		if err != nil {
			continue // it is not there yet
		}
		for _, other := range taken {
			if os.SameFile(info, other) && info.Mode().IsRegular() {
				return claimedTwice(path)
			}
		}
		taken = append(taken, info)
	}
	return checkDistinct(paths)
}

// checkDistinct refuses two results for one file that is not there yet.
func checkDistinct(paths []string) error {
	seen := map[string]bool{}
	for _, path := range paths {
		if _, err := os.Stat(path); err == nil || path == "" {
			continue
		}
		if seen[path] {
			return claimedTwice(path)
		}
		seen[path] = true
	}
	return nil
}

func claimedTwice(where string) error {
	return &engine.Error{Code: engine.CodeInvalid, Message: "Two results cannot both go to " + where + ".",
		Hint: "name two files"}
}

// Write writes a result to where claim was asked for it. An interrupt while a FIFO
// waits for its reader ends the process.
func (e *Env) Write(path string, result func(io.Writer) error) error {
	if path == "" {
		return nil
	}
	if e.results != nil && files.IsStdout(path, e.results) {
		return result(e.results)
	}
	defer context.AfterFunc(e.Ctx, e.Forget)()
	return files.Write(path, result)
}
