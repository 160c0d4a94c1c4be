// Package soak tries a cluster: it starts a synthetic site, real node processes of a binary and runs of several tenants on that
// site, harms the nodes and what they stand on, and has a judge say from the site's log and the final database whether the cluster
// was polite and lossless.
//
// It shares no code with what it tries: the product's part (making tables, ordering runs) is handed in, everything else happens in
// processes of the binary. Faults are in package chaos, the site in package web, the rules in package judge.
//
// Everything happens in a temporary folder, schema or database and key prefix, removed at the end.
package soak
