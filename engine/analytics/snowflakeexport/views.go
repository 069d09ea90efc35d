// This part makes the views over what was taken to a Snowflake account: the figures of runs, their seconds, kinds,
// statements and errors, and warehouses over time. A view shows the runs that are there as a whole.
//
// Each has a comment that begins with Mark and the version of its text. What carries it, of this version or a later
// one, is left as it is; what does not is somebody else's, and is not replaced.

package snowflakeexport
