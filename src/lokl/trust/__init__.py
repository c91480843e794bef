"""How far an expert can be trusted at a sample: calibrated, bounded, withdrawn where it is alone.

One idea a file, in the order in which they follow from each other: ``outcomes`` (what is voted on),
``neighbourhood`` (has a kernel seen anything like this?), ``calibration`` (what is a decision
worth?), ``evidence`` (what may one expert say at most, and does it fit what the others say?),
``panel`` (all experts on one question) and ``weights`` (how much each counts).
"""
