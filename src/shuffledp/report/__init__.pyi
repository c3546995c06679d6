from shuffledp.report.notebook import notebook_html as notebook_html
from shuffledp.report.notebook import terminal_text as terminal_text
from shuffledp.report.plots import plot as plot
from shuffledp.report.run import page_html as page_html
from shuffledp.report.run import write_report as write_report
from shuffledp.report.statement import Statement as Statement
from shuffledp.report.statement import privacy_statement as privacy_statement
