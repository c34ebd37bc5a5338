"""Run lifejacket's checks of an analysis data frame on a file that larl exported. Needs a Python that has lifejacket.

These are the input checks of both waves that need only the data frame. The others check functions and arguments that
the analyst writes.
"""

import sys

import pandas as pd
from lifejacket import input_checks as checks

NAMES = {
    "active_col_name": "in_study",
    "action_col_name": "action",
    "policy_num_col_name": "policy_num",
    "calendar_t_col_name": "calendar_t",
    "subject_id_col_name": "user_id",
    "action_prob_col_name": "action1prob",
    "reward_col_name": "reward",
}
active, action, policy, time, subject, probability, reward = NAMES.values()

frame = pd.read_csv(sys.argv[1], dtype={"user_id": str})
checks.perform_conditional_zeroth_wave_dataframe_checks(frame, **NAMES)
checks.require_named_columns_distinct(NAMES)
checks.require_all_named_columns_not_object_type_in_analysis_df(frame, **NAMES)
checks.verify_analysis_df_summary_satisfactory(frame, subject, policy, time, active, probability, reward, 1, 1, True)
checks.require_all_subjects_have_all_times_in_analysis_df(frame, time, subject)
checks.require_consecutive_integer_calendar_times(frame, time)
checks.require_consecutive_integer_policy_numbers(frame, active, policy)
checks.require_no_duplicate_subject_time_rows(frame, time, subject)
checks.require_contiguous_participation(frame, active, time, subject)
checks.require_nondecreasing_policy_numbers_over_time(frame, active, time, subject, policy)
checks.require_analysis_df_values_finite(frame, active, action, policy, probability, reward)
checks.require_binary_actions(frame, active, action)
checks.require_binary_active_indicators(frame, active)
print("passed", len(frame))
