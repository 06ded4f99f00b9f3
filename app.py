"""The entrance: `streamlit run app.py`."""

from ui import navigation

navigation.build().run()
