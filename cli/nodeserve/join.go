package nodeserve

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/loadstone-db/loadstone/cli/command"
	"github.com/loadstone-db/loadstone/cli/input"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/control/controlrpc"
	"github.com/loadstone-db/loadstone/engine/control/nodecert"
)

// identity is who the node is to servers: as it has joined before, or joins with the token of
// the flags. It is nil for a node that has neither.
func (c *Command) identity(e *command.Env, dir, id string) (*nodecert.Identity, error) {
	text, err := input.SecretOf("--join", c.Join, c.JoinFile)
	if err != nil {
		return nil, err
	}
	o := nodecert.IdentityOptions{Dir: dir, ID: id, Refused: (&refusals{env: e}).note}
	if text != "" {
		t, err := nodecert.ParseToken(text)
		if err != nil {
			return nil, engine.InvalidField("--join", err.Error(),
				"copy all of what `loadstone node token` printed on a server: it begins with "+nodecert.TokenPrefix)
		}
		o.Token = &t
	}
	i, err := nodecert.OpenIdentity(o)
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
				"until "+filepath.Join(dir, "node-identity.pem")+" is moved away")
	case text != "" && o.Token != nil && i.Joined():
		e.Log.Info().Str("token_id", o.Token.ID).Msg("the node has joined with this token before, and goes on as it is")
	case !i.Joined():
		e.Log.Info().Str("token_id", o.Token.ID).Msg("the node joins when a server of its token dials it")
	}
	if until := i.NotAfter(); !until.IsZero() && time.Now().After(until) && i.Joined() {
		e.Log.Error().Time("not_after", until).Msg("the node's certificate has expired: servers refuse it; " +
			"start it with --join and a new token of loadstone node token")
	}
	return i, nil
}

// refusals log why servers were not let in, each reason once in a while: who dials tries again.
type refusals struct {
	env  *command.Env
	mu   sync.Mutex
	last string
	at   time.Time
}

// refusalEvery is how often the same reason is logged.
const refusalEvery = time.Minute

func (r *refusals) note(err error) {
	r.mu.Lock()
	again := err.Error() == r.last && time.Since(r.at) < refusalEvery
	if !again {
		r.last, r.at = err.Error(), time.Now()
	}
	r.mu.Unlock()
	if again {
		return
	}
	why := controlrpc.Refused(err)
	if errors.Is(err, nodecert.ErrForeign) {
		r.env.Log.Warn().Str("hint", why.Hint).Msg(why.Message)
		return
	}
	r.env.Log.Error().Str("hint", why.Hint).Msg(why.Message)
}
