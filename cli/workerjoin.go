package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/pki"
	"github.com/loadstone-db/loadstone/engine/cluster/rpc"
)

// identityFile is where nodecert keeps who the node is.
const identityFile = "node-identity.pem"

// checkEmptySecrets refuses secrets that are set in the environment and hold nothing: a node whose token was not filled
// in would listen without one. A node that has joined needs none.
func (c *WorkerCommand) checkEmptySecrets() error {
	joined := false
	if _, err := os.Stat(filepath.Join(c.DataDir, identityFile)); err == nil {
		joined = true
	}
	if c.Join != nil && *c.Join == "" && !joined && c.JoinFile == "" {
		return engine.InvalidField("--join", "is empty, here or in LOADSTONE_JOIN",
			"give it the token of loadstone node token; leave it out, and the variable unset, to do without")
	}
	for _, v := range []struct {
		name, flag, value string
		fine              bool
	}{
		{"LOADSTONE_JOIN_FILE", "--join-file", c.JoinFile, joined || c.join() != ""},
		{"LOADSTONE_WORKER_TOKEN_FILE", "--token-file", c.TokenFile, false},
		{"LOADSTONE_WORKER_CLIENT_CA", "--client-ca", c.ClientCA, false},
		{"LOADSTONE_WORKER_CERT", "--cert", c.Cert, false},
		{"LOADSTONE_WORKER_KEY", "--key", c.Key, false},
	} {
		if set, ok := os.LookupEnv(v.name); ok && set == "" && v.value == "" && !v.fine {
			return engine.InvalidField(v.flag, v.name+" is set and empty", "fill it in, or unset it to do without")
		}
	}
	return nil
}

// join is the token of the flags, "" without one.
func (c *WorkerCommand) join() string {
	if c.Join == nil {
		return ""
	}
	return *c.Join
}

// identity is who the node is to servers: as it has joined before, or joins with the token of
// the flags. It is nil for a node that has neither.
func (c *WorkerCommand) identity(e *terminal.Env, dir, id string) (*pki.Identity, error) {
	text, err := terminal.SecretFlag("--join", c.join(), c.JoinFile)
	if err != nil {
		return nil, err
	}
	o := pki.IdentityOptions{Dir: dir, ID: id, OnReject: (&rejectionLog{env: e}).note}
	if text != "" {
		t, err := pki.ParseToken(text)
		if err != nil {
			return nil, engine.InvalidField("--join", err.Error(),
				"copy all of what `loadstone node token` printed on a server: it begins with "+pki.TokenPrefix)
		}
		o.Token = &t
	}
	i, err := pki.OpenIdentity(o)
	switch {
	case err != nil:
		return nil, &engine.Error{Code: engine.CodeInvalid, Cause: err,
			Message: fmt.Sprintf("The node's identity in %s cannot be used: %v.", dir, err),
			Hint:    "Move the file away, and start the node with --join and a new token."}
	case i == nil:
		return nil, nil
	case c.Cert != "" || c.ClientCA != "" || c.TokenFile != "" || c.Insecure:
		return nil, engine.InvalidField("--join",
			"a node joins the servers' own authority, or has certificates or a token of "+
				"its operator: not both",
			"leave --cert, --key, --client-ca, --token-file and --insecure out; a node that has joined before does so "+
				"until "+filepath.Join(dir, identityFile)+" is moved away")
	case text != "" && o.Token != nil && i.Joined():
		e.Log.Info().Str("token_id", o.Token.ID).Msg("the node has joined with this token before, and keeps its identity")
	case !i.Joined():
		e.Log.Info().Str("token_id", o.Token.ID).Msg("the node joins when a server of its token dials it")
	}
	if until := i.NotAfter(); !until.IsZero() && time.Now().After(until) && i.Joined() {
		e.Log.Error().Time("not_after", until).Msg("the node's certificate has expired: servers refuse it; " +
			"start it with --join and a new token of loadstone node token")
	}
	return i, nil
}

// rejectionLog log why servers were not let in, each reason once in a while: who dials tries again.
type rejectionLog struct {
	env    *terminal.Env
	mu     sync.Mutex
	logged string
	at     time.Time
}

// rejectionLogInterval is how often the same reason is logged.
const rejectionLogInterval = time.Minute

func (r *rejectionLog) note(err error) {
	r.mu.Lock()
	second := err.Error() == r.logged && time.Since(r.at) < rejectionLogInterval
	if !second {
		r.logged, r.at = err.Error(), time.Now()
	}
	r.mu.Unlock()
	if second {
		return
	}
	why := rpc.LogRejected(err)
	if errors.Is(err, pki.ErrForeign) {
		r.env.Log.Warn().Str("hint", why.Hint).Msg(why.Message)
		return
	}
	r.env.Log.Error().Str("hint", why.Hint).Msg(why.Message)
}
