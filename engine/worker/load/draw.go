package load

import (
	"errors"

	"github.com/loadstone-db/loadstone/engine/plugin"
)

// draw puts the stream's next group into work and returns the batch that it lies
// in: p, or another, for which usedUp may exchange the one that is used up. When
// the stream has ended or failed, work has no operations.
func (g *Group) draw(p *OpBatch, work *Unit,
	usedUp func(*OpBatch) *OpBatch) *OpBatch {
	work.Delay, work.Ops = 0, nil
	for {
		ok, err := p.Take(work, g.kinds)
		if ok {
			return p
		}
		if err != nil {
			g.fail(InvalidUnitError(err))
			return p
		}
		if p, err = g.source.Refill(usedUp(p)); err != nil {
			if errors.Is(err, plugin.ErrEnded) {
				g.streamEnded()
			} else {
				g.fail(err)
			}
			return p
		}
	}
}
