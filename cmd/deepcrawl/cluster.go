package main

import "github.com/urfave/cli/v2"

func (p *program) clusterCommand() *cli.Command {
	return &cli.Command{
		Name: "cluster", Usage: "the nodes on a database, together",
		Subcommands: []*cli.Command{
			p.clusterStatusCommand(),
			p.clusterCheckCommand(),
			p.clusterSoakCommand(),
			p.clusterCoordCommand(),
		},
	}
}
