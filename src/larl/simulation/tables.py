"""Public tables of a comparison: statistics over units, LaTeX, and regret over the hyper-parameters of a grid."""

from larl.simulation.grid_tables import best_candidates as best_candidates
from larl.simulation.grid_tables import candidates_note as candidates_note
from larl.simulation.grid_tables import check_axes as check_axes
from larl.simulation.grid_tables import heatmap as heatmap
from larl.simulation.grid_tables import line as line
from larl.simulation.unit_tables import grid_points as grid_points
from larl.simulation.unit_tables import latex as latex
from larl.simulation.unit_tables import percentile_error as percentile_error
from larl.simulation.unit_tables import units as units
