package findings

// Sizes are how many names of the server a collector holds.
func (c *Collector) Sizes() (causes, counters, sessions int) {
	all := map[cause]bool{}
	for i := range c.slots {
		for k := range c.slots[i].causes {
			all[k] = true
		}
	}
	return max(len(all), len(c.statements)), len(c.counters), len(c.culprits)
}
